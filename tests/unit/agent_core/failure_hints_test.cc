#include "agent/core/failure_hints.h"

#include <csignal>

#include "tests/support/catch.h"

namespace ddprun {
namespace {

using Sentences = std::vector<std::string>;

constexpr std::uint64_t kGiB = 1ULL << 30U;

ExitStatus Exited(int code) {
  return {ExitStatus::Kind::kExited, code, false};
}

ExitStatus Signaled(int signal, bool core = false) {
  return {ExitStatus::Kind::kSignaled, signal, core};
}

FailureEvidence Evidence(ExitStatus status, const std::string& tail = "") {
  FailureEvidence evidence;
  evidence.failure.status = status;
  evidence.failure.pid = 42;
  evidence.stderr_tail = tail;
  evidence.before.oom_kills = 1;
  evidence.after.oom_kills = 1;
  evidence.after.shared_memory_path = "/dev/shm";
  evidence.after.shared_memory = SharedMemoryUse{64 << 20U, 63 << 20U};
  evidence.after.core_limit = 0;
  evidence.after.core_pattern = "core";
  return evidence;
}

TEST_CASE("an ordinary exit has no hints") {
  const FailureHints hints = HintsFor(Evidence(Exited(1), "ValueError: boom\n"));
  CHECK(hints.facts.empty());
  CHECK(hints.fixes.empty());
}

TEST_CASE("an OOM kill is told with limit and peak, whoever was its victim") {
  FailureEvidence evidence = Evidence(Signaled(SIGKILL));
  evidence.after.oom_kills = 2;
  evidence.after.memory_limit = 2 * kGiB;
  evidence.after.memory_peak = 2 * kGiB;
  CHECK(HintsFor(evidence).facts == Sentences{"the kernel's OOM killer ended 1 process in this "
                                              "job's memory cgroup (limit 2.0 GiB, peak 2.0 GiB)"});
  CHECK(HintsFor(evidence).fixes.size() == 1);
  evidence.failure.status = Exited(1);
  evidence.after.oom_kills = 3;
  evidence.after.memory_limit.reset();
  CHECK(HintsFor(evidence).facts == Sentences{"the kernel's OOM killer ended 2 processes in this "
                                              "job's memory cgroup (peak 2.0 GiB)"});
  evidence.after.memory_peak.reset();
  CHECK(DescribeOomKills(evidence.before, evidence.after).back() == 'p');
}

TEST_CASE("a SIGKILL without an OOM kill says so, or that it is not known") {
  FailureEvidence evidence = Evidence(Signaled(SIGKILL));
  CHECK(HintsFor(evidence).facts.front().find("counted no OOM kill") != std::string::npos);
  evidence.before.oom_kills.reset();
  evidence.after.oom_kills.reset();
  evidence.after.cgroup_problem = "no memory cgroup";
  CHECK(HintsFor(evidence).facts.front().find("is not known (no memory cgroup)") !=
        std::string::npos);
  evidence.failure.stopped_by_agent = true;
  CHECK(HintsFor(evidence).facts.empty());
}

TEST_CASE("counters that went backwards or are missing count nothing") {
  MemoryFacts before;
  MemoryFacts after;
  CHECK(OomKillsBetween(before, after) == 0);
  before.oom_kills = 5;
  after.oom_kills = 4;
  CHECK(OomKillsBetween(before, after) == 0);
  after.oom_kills = 7;
  CHECK(OomKillsBetween(before, after) == 2);
}

TEST_CASE("a bus error shows the shared memory, also when a data loader's worker had it") {
  const std::string fact = "shared memory /dev/shm: 64.0 MiB in size, 63.0 MiB in use now";
  CHECK(HintsFor(Evidence(Signaled(SIGBUS))).facts.front() == fact);
  CHECK(HintsFor(Evidence(Signaled(SIGBUS))).fixes.size() == 1);
  for (const char* tail :
       {"RuntimeError: DataLoader worker (pid 3) is killed by signal: Bus error. It ...",
        "RuntimeError: unable to write to file </torch_12_34>", "out of shared memory"}) {
    CHECK(HintsFor(Evidence(Exited(1), tail)).facts == Sentences{fact});
  }
  FailureEvidence unknown = Evidence(Exited(1), "Bus error");
  unknown.after.shared_memory.reset();
  CHECK(HintsFor(unknown).facts.empty());
}

TEST_CASE("a crash says where its core is, or why there is none") {
  FailureEvidence evidence = Evidence(Signaled(SIGSEGV));
  CHECK(HintsFor(evidence).facts.front().find("no core file: the core limit is 0") == 0);
  evidence.failure.status = Signaled(SIGSEGV, true);
  CHECK(HintsFor(evidence).facts ==
        Sentences{"core file: 'core' in the worker's working directory"});
  evidence.after.core_uses_pid = true;
  CHECK(HintsFor(evidence).facts.front().find("'core.42'") != std::string::npos);
  evidence.after.core_pattern = "/var/core/%e.%p%%";
  CHECK(HintsFor(evidence).facts == Sentences{"core file: '/var/core/%e.42%'"});
  evidence.after.core_pattern = "|/usr/lib/handler %p";
  CHECK(HintsFor(evidence).facts ==
        Sentences{"the core went to the handler '/usr/lib/handler %p' (core_pattern)"});
  evidence.failure.status = Signaled(SIGSEGV);
  CHECK(HintsFor(evidence).facts.empty());
  evidence.after.core_pattern.clear();
  evidence.failure.status = Signaled(SIGSEGV, true);
  CHECK(HintsFor(evidence).facts == Sentences{"a core file was written"});
  evidence.after.core_limit.reset();
  evidence.failure.status = Signaled(SIGSEGV);
  CHECK(HintsFor(evidence).facts.empty());
  CHECK(HintsFor(Evidence(Signaled(SIGTERM))).facts.empty());
}

TEST_CASE("a busy address names the owner of the port that the text holds") {
  FailureEvidence evidence = Evidence(
      Exited(1), "x\n... failed to listen. port: 29500, code: -98, EADDRINUSE\nport 29501\n");
  evidence.ports = {{29500, "this job's store (ddprun, pid 12)"}, {29501, "rank 3"}};
  CHECK(HintsFor(evidence).facts ==
        Sentences{"port 29500 is held by this job's store (ddprun, pid 12)"});
  evidence.stderr_tail = "OSError: [Errno 98] Address already in use\n";
  CHECK(
      HintsFor(evidence).facts ==
      Sentences{"if the address was port 29500: that is held by this job's store (ddprun, pid 12)",
                "if the address was port 29501: that is held by rank 3"});
  evidence.stderr_tail = "bind to 129500: address already in use, 295001\n";
  CHECK(HintsFor(evidence).facts.size() == 2);
  evidence.ports.assign(10, PortOwner{1, "x"});
  CHECK(HintsFor(evidence).facts.size() == 3);
  evidence.stderr_tail = "port 29500\n";
  CHECK(HintsFor(evidence).facts.empty());
}

TEST_CASE("a refused local rank argument is recognised, and the advice is passed on") {
  CHECK(RejectedLocalRank(Exited(2), "t.py: error: unrecognized arguments: --local-rank=0\n") ==
        "--local-rank");
  CHECK(RejectedLocalRank(Exited(2), "t.py: error: unrecognized arguments: --local_rank=1\n") ==
        "--local_rank");
  CHECK(RejectedLocalRank(Exited(2), "Error: No such option: --local-rank") == "--local-rank");
  CHECK(RejectedLocalRank(Exited(1), "Unknown command line flag 'local_rank'. Did you mean: x") ==
        "--local_rank");
  CHECK_FALSE(RejectedLocalRank(Exited(2), "unrecognized arguments: --foo\n --local_rank"));
  CHECK_FALSE(RejectedLocalRank(Exited(0), "unrecognized arguments: --local_rank"));
  CHECK_FALSE(RejectedLocalRank(Signaled(SIGKILL), "unrecognized arguments: --local_rank"));
  FailureEvidence evidence = Evidence(Exited(2), "error: unrecognized arguments: --local_rank=0");
  CHECK(HintsFor(evidence).facts ==
        Sentences{"the script's own parser does not know --local_rank"});
  CHECK(HintsFor(evidence).fixes.empty());
  evidence.local_rank_advice = "run it with ...";
  CHECK(HintsFor(evidence).fixes == Sentences{"run it with ..."});
}

TEST_CASE("a start on little shared memory is warned about, on more than one rank") {
  MemoryFacts facts;
  CHECK(SmallSharedMemoryWarning(facts, 2).empty());
  facts.shared_memory_path = "/dev/shm";
  facts.shared_memory = SharedMemoryUse{64 << 20U, 0};
  CHECK(SmallSharedMemoryWarning(facts, 2).find("/dev/shm has only 64.0 MiB") == 0);
  CHECK(SmallSharedMemoryWarning(facts, 1).empty());
  facts.shared_memory->size += 1;
  CHECK(SmallSharedMemoryWarning(facts, 2).empty());
}

TEST_CASE("bytes are shown in the unit that fits") {
  CHECK(DescribeBytes(0) == "0 B");
  CHECK(DescribeBytes(1023) == "1023 B");
  CHECK(DescribeBytes(1536) == "1.5 KiB");
  CHECK(DescribeBytes(~0ULL) == "16384.0 PiB");
}

}  // namespace
}  // namespace ddprun
