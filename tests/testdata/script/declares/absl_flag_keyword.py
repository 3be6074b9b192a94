# expect: --local_rank
# needs: absl
from absl import app
from absl.flags import DEFINE_integer
RANK = DEFINE_integer(name="local_rank", default=0, help="set by the launcher")
app.run(lambda _: print(RANK.value))
