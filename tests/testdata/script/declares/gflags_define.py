# expect: --local_rank
# needs: gflags
import gflags
import sys
gflags.DEFINE_integer('local_rank', 0, 'set by the launcher')
gflags.FLAGS(sys.argv)
print(gflags.FLAGS.local_rank)
