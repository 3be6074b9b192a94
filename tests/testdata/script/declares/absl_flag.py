# expect: --local_rank
# needs: absl
from absl import app, flags
FLAGS = flags.FLAGS
flags.DEFINE_integer("local_rank", 0, "set by the launcher")
def main(_):
    print(FLAGS.local_rank)
app.run(main)
