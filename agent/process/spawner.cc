#include "agent/process/spawner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/process/exec_search.h"
#include "agent/process/spawn_child.h"
#include "agent/process/spawn_clone.h"

namespace ddprun {
namespace {

std::uint64_t ToKernelSet(const sigset_t& set) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &set, sizeof bits);  // glibc keeps the kernel's words in front.
  return bits;
}

std::vector<const char*> ToPointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    pointers.push_back(text.c_str());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// While it lives, no signal reaches this thread, nor a child that it makes.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

struct ReportPipe {
  UniqueFd read_end;
  UniqueFd write_end;  // Never 0-2: the child puts its standard streams there.
};

Expected<ReportPipe> OpenReportPipe() {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    const int err = errno;
    return Fail(err, "pipe");
  }
  ReportPipe pipe = {UniqueFd(ends[0]), UniqueFd(ends[1])};
  if (pipe.write_end.get() < 3) {
    UniqueFd moved(::fcntl(pipe.write_end.get(), F_DUPFD_CLOEXEC, 3));
    if (!moved) {
      const int err = errno;
      return Fail(err, "pipe");
    }
    pipe.write_end = std::move(moved);
  }
  return pipe;
}

// Owns what a ChildPlan points to.
struct Preparation {
  std::vector<std::string> candidates;
  std::vector<const char*> candidate_pointers;
  std::vector<const char*> argv;
  std::vector<const char*> environment;
  std::vector<int> keep_open;
  UniqueFd null;
  UniqueFd cgroup_procs;
  int cgroup_open_error = 0;
  ReportPipe pipe;
  ChildPlan plan;
};

Expected<void> PrepareStreams(const SpawnRequest& request, Preparation& ready) {
  const std::array<const StandardStream*, 3> streams = {&request.in, &request.out, &request.err};
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i]->null() && !ready.null) {
      ready.null = UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
      if (!ready.null) {
        const int err = errno;
        return Fail(err, "open '/dev/null'");
      }
    }
    ready.plan.streams[i] = streams[i]->null() ? ready.null.get() : streams[i]->get();
  }
  return {};
}

void FillPlan(const SpawnRequest& request, Preparation& ready) {
  ready.candidates = ExecCandidates(request.argv.front(), request.environment);
  ready.candidate_pointers = ToPointers(ready.candidates);
  ready.argv = ToPointers(request.argv);
  ready.environment = ToPointers(request.environment);
  for (const UniqueFd* fd : request.keep_open) {
    ready.keep_open.push_back(fd->get());
  }
  ChildPlan& plan = ready.plan;
  plan.candidates = ready.candidate_pointers.data();
  plan.argv = ready.argv.data();
  plan.environment = ready.environment.data();
  plan.keep_open = ready.keep_open.data();
  plan.keep_open_count = ready.keep_open.size();
  plan.report = ready.pipe.write_end.get();
  plan.new_session = request.new_session;
  plan.parent_death_signal = request.parent_death_signal;
  plan.parent = ::getpid();
  plan.ignored_signals = ToKernelSet(request.signals.ignored_in_workers());
  plan.signal_mask = ToKernelSet(request.signals.mask());
}

Expected<Preparation> Prepare(const SpawnRequest& request) {
  if (request.argv.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "there is no program to start");
  }
  Preparation ready;
  Expected<ReportPipe> pipe = OpenReportPipe();
  if (!pipe) {
    return tl::unexpected<Error>(std::move(pipe).error());
  }
  ready.pipe = std::move(*pipe);
  if (Expected<void> streams = PrepareStreams(request, ready); !streams) {
    return tl::unexpected<Error>(std::move(streams).error());
  }
  FillPlan(request, ready);
  return ready;
}

// Clones into the cgroup; where the kernel or a sandbox will not, the child joins it by itself.
pid_t MakeChild(const SpawnRequest& request, Preparation& ready) {
  const BlockedSignals blocked;
  if (request.cgroup == nullptr) {
    return VforkChild(ready.plan);
  }
  const pid_t pid = CloneChildInto(*request.cgroup, ready.plan);
  if (pid > 0 || errno == EAGAIN || errno == ENOMEM) {
    return pid;
  }
  ready.cgroup_procs =
      UniqueFd(::openat(request.cgroup->get(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
  ready.cgroup_open_error = ready.cgroup_procs ? 0 : errno;
  ready.plan.cgroup_procs = ready.cgroup_procs.get();
  return VforkChild(ready.plan);
}

std::vector<SpawnReport> ReadReports(const UniqueFd& pipe) {
  std::vector<SpawnReport> reports;
  SpawnReport report = {};
  for (;;) {
    const ssize_t size = ::read(pipe.get(), &report, sizeof report);
    if (size ==
        static_cast<ssize_t>(sizeof report)) {  // Whole: a pipe keeps small writes together.
      reports.push_back(report);
    } else if (size >= 0 || errno != EINTR) {
      return reports;
    }
  }
}

void Reap(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

tl::unexpected<Error> FailExec(const std::string& program, const SpawnReport& report,
                               const std::vector<std::string>& candidates) {
  const bool searched = program.find('/') == std::string::npos;
  const std::string& culprit = candidates[static_cast<std::size_t>(report.candidate)];
  const std::string reason = ExplainExecFailure(culprit, report.errno_value, searched);
  const bool found_in_path = searched && ::access(culprit.c_str(), F_OK) == 0;
  tl::unexpected<Error> error =
      Fail(report.errno_value, fmt::format("exec '{}'", found_in_path ? culprit : program));
  if (!reason.empty()) {
    error.value().message += fmt::format(" ({})", reason);
  }
  return error;
}

tl::unexpected<Error> FailStage(const std::string& program, const SpawnReport& report,
                                const std::vector<std::string>& candidates) {
  switch (report.stage) {
    case SpawnStage::kExec:
      return FailExec(program, report, candidates);
    case SpawnStage::kSession:
      return Fail(report.errno_value, "make a session");
    case SpawnStage::kParentDeath:
      return Fail(report.errno_value, "set the parent-death signal");
    case SpawnStage::kStandardStreams:
      return Fail(report.errno_value, "connect the standard streams");
    case SpawnStage::kCloseDescriptors:
      return Fail(report.errno_value, "close inherited descriptors");
    case SpawnStage::kCgroup:
      break;  // Tolerated by the child; it never ends for it.
  }
  return Fail(report.errno_value, "join the cgroup");
}

Expected<SpawnedProcess> Settle(pid_t pid, const std::vector<SpawnReport>& reports,
                                const std::string& program, const Preparation& ready) {
  SpawnedProcess process;
  process.pid = pid;
  process.cgroup_error = ready.cgroup_open_error;
  for (const SpawnReport& report : reports) {
    if (report.stage != SpawnStage::kCgroup) {
      Reap(pid);
      return FailStage(program, report, ready.candidates);
    }
    process.cgroup_error = report.errno_value;
  }
  Expected<Pidfd> pidfd = Pidfd::Open(pid);
  if (!pidfd) {  // Out of descriptors: a worker that we could not watch must not run.
    ::kill(pid, SIGKILL);
    Reap(pid);
    return tl::unexpected<Error>(std::move(pidfd).error());
  }
  process.pidfd = std::move(*pidfd);
  return process;
}

Expected<SpawnedProcess> TrySpawn(const SpawnRequest& request) {
  Expected<Preparation> ready = Prepare(request);
  if (!ready) {
    return tl::unexpected<Error>(std::move(ready).error());
  }
  const pid_t pid = MakeChild(request, *ready);
  if (pid < 0) {
    const int err = errno;
    return Fail(err, "make a process");
  }
  ready->pipe.write_end.Reset();
  return Settle(pid, ReadReports(ready->pipe.read_end), request.argv.front(), *ready);
}

}  // namespace

Expected<SpawnedProcess> Spawn(const SpawnRequest& request) {
  Expected<SpawnedProcess> process = TrySpawn(request);
  if (!process) {
    return FailIn(request.name, std::move(process).error());
  }
  return process;
}

}  // namespace ddprun
