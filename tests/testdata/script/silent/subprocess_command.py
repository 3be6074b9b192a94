# expect: nothing
# rejects
import argparse
import subprocess
argparse.ArgumentParser().parse_args()
subprocess.run(["python", "train.py", "--local_rank", "0"])
subprocess.Popen("python train.py --local_rank=0", shell=True)
