# expect: nothing
# rejects
import argparse
argparse.ArgumentParser().parse_args()
class Registry(set):
    def register(self, *names):
        self.update(names)
registry = Registry()
registry.add("--local_rank")
registry.register("--local_rank")
assert "--local_rank" in registry
