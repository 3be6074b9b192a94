#include "agent/process/process_tree.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "agent/process/guardian.h"

namespace ddprun {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{1};
constexpr milliseconds kLongestPause{20};
constexpr int kSuspendPasses = 8;  // Enough for a tree that still forks while it is being stopped.

// Signals that ask a process to end. A stopped one sees them only after SIGCONT.
bool AsksToEnd(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

std::string_view DescribeState(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "uninterruptible sleep, in a driver or a file system";
    case 'T':
      return "stopped";
    case 't':
      return "stopped by a debugger";
    case 'Z':
      return "zombie with living threads";
    default:
      return "unknown";
  }
}

std::vector<pid_t> OwnChildren(bool use_children_files) {
  if (use_children_files) {
    Children children = ReadChildren(::getpid());
    if (children.complete) {
      return std::move(children.pids);
    }
  }
  std::vector<pid_t> pids;
  for (const ProcessInfo& process : ReadAllProcesses()) {
    if (process.parent == ::getpid()) {
      pids.push_back(process.pid);
    }
  }
  return pids;
}

// All that is below this process, nearest first, walking only into what `enter` accepts. A process
// whose parent dies during the walk becomes our own child, so our children are read again until
// none is new.
template <typename Enter>
std::vector<ProcessInfo> WalkChildrenFiles(const Enter& enter) {
  std::vector<ProcessInfo> found;
  std::set<pid_t> seen;
  const auto add = [&](pid_t pid) {
    if (!seen.insert(pid).second) {
      return;
    }
    std::optional<ProcessInfo> info = ReadProcess(pid);
    if (info && enter(*info)) {
      found.push_back(std::move(*info));
    }
  };
  std::size_t next = 0;
  for (;;) {
    const std::size_t before = seen.size();
    std::ranges::for_each(ReadChildren(::getpid()).pids, add);
    if (seen.size() == before) {
      return found;
    }
    for (; next < found.size(); ++next) {
      std::ranges::for_each(ReadChildren(found[next].pid).pids, add);
    }
  }
}

template <typename Enter>
std::vector<ProcessInfo> WalkAllProcesses(const Enter& enter) {
  std::multimap<pid_t, ProcessInfo> by_parent;
  for (const ProcessInfo& process : ReadAllProcesses()) {
    by_parent.emplace(process.parent, process);
  }
  std::vector<ProcessInfo> found;
  std::vector<pid_t> parents = {::getpid()};
  std::set<pid_t> seen = {::getpid()};  // A pid used again while we looked could close a circle.
  for (std::size_t next = 0; next < parents.size(); ++next) {
    const auto [begin, end] = by_parent.equal_range(parents[next]);
    for (auto child = begin; child != end; ++child) {
      if (seen.insert(child->second.pid).second && enter(child->second)) {
        parents.push_back(child->second.pid);
        found.push_back(child->second);
      }
    }
  }
  return found;
}

std::optional<ExitStatus> ReapIfDead(pid_t pid) {
  siginfo_t info = {};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  if (info.si_code == CLD_EXITED) {
    return ExitStatus{ExitStatus::Kind::kExited, info.si_status, false};
  }
  return ExitStatus{ExitStatus::Kind::kSignaled, info.si_status, info.si_code == CLD_DUMPED};
}

std::vector<StubbornProcess> SignalEach(const std::vector<ProcessInfo>& processes, int signal) {
  std::vector<StubbornProcess> refused;
  for (const ProcessInfo& process : processes) {
    const int err = SignalProcess(process, signal);
    if (err == 0 && AsksToEnd(signal)) {
      SignalProcess(process, SIGCONT);
    }
    if (err != 0 && err != ESRCH) {
      refused.push_back({process, err});
    }
  }
  return refused;
}

}  // namespace

std::string Describe(const StubbornProcess& stubborn) {
  const ProcessInfo& process = stubborn.process;
  return fmt::format("pid {} ({}, state {}: {}){}{}", process.pid, process.command, process.state,
                     DescribeState(process.state), stubborn.errno_value == 0 ? "" : ": ",
                     stubborn.errno_value == 0 ? "" : ErrnoText(stubborn.errno_value));
}

ProcessTree ProcessTree::Create(const std::string& job_id, Options options) {
  const char* outer = ::getenv(JobMarker::kVariable);
  ProcessTree tree(JobMarker(job_id, outer == nullptr ? "" : outer));
  tree.options_ = options;
  tree.containment_ = "workers are held by subreaper and environment marker";
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  return tree;
}

void ProcessTree::MakeCgroup(Guardian* guardian) {
  const Expected<std::string> path = JobCgroup::PathFor(marker_.id());
  if (path && guardian != nullptr) {
    static_cast<void>(guardian->OwnCgroup(*path));  // Gone: the cgroup helps without it too.
  }
  Expected<JobCgroup> cgroup =
      path ? JobCgroup::Create(*path) : tl::unexpected<Error>(path.error());
  if (cgroup) {
    containment_ = fmt::format("workers are held by cgroup '{}'", cgroup->path());
    cgroup_ = std::move(*cgroup);
  } else {
    containment_ = fmt::format("workers are held by subreaper and environment marker ({})",
                               cgroup.error().message);
  }
}

ProcessTree::~ProcessTree() {
  if (cgroup_ && cgroup_->directory()) {   // Not after a move.
    static_cast<void>(cgroup_->Remove());  // Still occupied: KillAll has said by whom.
  }
}

void ProcessTree::AddWorker(pid_t pid, bool own_session) {
  workers_[pid] = {own_session, false};
}

void ProcessTree::WorkerReaped(pid_t pid) {
  if (const auto worker = workers_.find(pid); worker != workers_.end()) {
    worker->second.reaped = true;
  }
}

void ProcessTree::ForgetWorker(pid_t pid) {
  workers_.erase(pid);
}

void ProcessTree::AddHelper(pid_t pid) {
  helpers_.insert(pid);
}

void ProcessTree::HelperReaped(pid_t pid) {
  helpers_.erase(pid);
}

bool ProcessTree::Registered(pid_t pid) const {
  const auto worker = workers_.find(pid);
  return helpers_.contains(pid) || (worker != workers_.end() && !worker->second.reaped);
}

// As PID 1 of a container we adopt strangers too, such as what `docker exec` left behind. Only
// those that carry a sign of the job are members; the kernel ends the rest with us. A dying process
// has lost its environment before it is gone, so what was recognised once stays so.
bool ProcessTree::Stranger(const ProcessInfo& process) const {
  if (::getpid() != 1 || process.parent != 1 || Registered(process.pid) ||
      workers_.contains(process.session)) {
    return false;
  }
  const ProcessKey key = {process.pid, process.start_time};
  if (recognised_.contains(key)) {
    return false;
  }
  const auto value = ReadEnvironmentVariable(process.pid, JobMarker::kVariable);
  if (!value || !marker_.matches(*value)) {
    return true;
  }
  recognised_.insert(key);
  return false;
}

std::vector<ProcessInfo> ProcessTree::Members() const {
  const auto enter = [this](const ProcessInfo& process) {
    return !helpers_.contains(process.pid) && !Stranger(process);
  };
  const bool walk_files = options_.use_children_files && ReadChildren(::getpid()).complete;
  std::vector<ProcessInfo> members =
      walk_files ? WalkChildrenFiles(enter) : WalkAllProcesses(enter);
  std::set<pid_t> known;
  for (const ProcessInfo& member : members) {
    known.insert(member.pid);
  }
  for (const pid_t pid : cgroup_ ? cgroup_->Pids() : std::vector<pid_t>()) {
    std::optional<ProcessInfo> info = known.contains(pid) ? std::nullopt : ReadProcess(pid);
    if (info) {
      members.push_back(std::move(*info));
    }
  }
  std::erase_if(members, [](const ProcessInfo& member) { return !member.alive(); });
  ForgetGone(members);
  return members;
}

void ProcessTree::ForgetGone(const std::vector<ProcessInfo>& members) const {
  std::set<ProcessKey> living;
  for (const ProcessInfo& member : members) {
    living.insert({member.pid, member.start_time});
  }
  std::erase_if(recognised_, [&](const ProcessKey& key) { return !living.contains(key); });
}

std::vector<ProcessInfo> ProcessTree::MembersOf(pid_t worker) const {
  std::vector<ProcessInfo> members;
  std::set<pid_t> inside = {worker};
  for (ProcessInfo& member : Members()) {  // Parents come before their children.
    if (inside.contains(member.pid) || inside.contains(member.parent) || member.session == worker) {
      inside.insert(member.pid);
      members.push_back(std::move(member));
    }
  }
  return members;
}

// The number of a group cannot be used again while a member or an unreaped leader holds it. After
// that it may be a stranger's, so a reaped leader's group is signalled only if a member is still
// seen in it.
bool ProcessTree::SignalGroup(pid_t worker, int signal) {
  const auto entry = workers_.find(worker);
  if (entry == workers_.end()) {
    return false;
  }
  if (!entry->second.own_session) {
    const std::vector<ProcessInfo> members = MembersOf(worker);
    SignalEach(members, signal);
    return !members.empty();
  }
  const std::vector<ProcessInfo> members =
      entry->second.reaped ? Members() : std::vector<ProcessInfo>();
  const bool ours = !entry->second.reaped || std::ranges::any_of(members, [&](const auto& member) {
    return member.group == worker && member.session == worker;
  });
  if (!ours || (::kill(-worker, signal) != 0 && errno == ESRCH)) {
    return false;
  }
  if (AsksToEnd(signal)) {
    ::kill(-worker, SIGCONT);
  }
  return true;
}

std::vector<StubbornProcess> ProcessTree::SignalTree(int signal) {
  return SignalEach(Members(), signal);
}

std::vector<StubbornProcess> ProcessTree::SignalTree(pid_t worker, int signal) {
  return SignalEach(MembersOf(worker), signal);
}

// Groups go first: a group is killed atomically, so that a chain of processes that fork and exit
// faster than we can look ends too. A group in our own session could be the launcher's own.
void ProcessTree::KillGroups(const std::vector<ProcessInfo>& members) {
  std::set<pid_t> groups;
  for (const ProcessInfo& member : members) {
    if (member.session != ::getsid(0) && member.group > 1) {
      groups.insert(member.group);
    }
  }
  for (const pid_t group : groups) {
    ::kill(-group, SIGKILL);
  }
}

void ProcessTree::RenewCgroup() {
  if (!cgroup_ || !cgroup_was_killed_) {
    return;
  }
  cgroup_was_killed_ = false;
  const std::string path = cgroup_->path();
  Expected<void> removed = cgroup_->Remove();
  Expected<JobCgroup> fresh =
      removed ? JobCgroup::Create(path) : tl::unexpected<Error>(removed.error());
  cgroup_.reset();  // The subreaper holds the workers without it too.
  if (fresh) {
    cgroup_ = std::move(*fresh);
  }
}

std::vector<StubbornProcess> ProcessTree::KillOnce() {
  const std::vector<ProcessInfo> members = Members();
  if (cgroup_ && !members.empty()) {
    cgroup_was_killed_ = cgroup_->Kill() || cgroup_was_killed_;
  }
  KillGroups(members);
  std::vector<StubbornProcess> left;
  for (const ProcessInfo& member : members) {
    const int err = SignalProcess(member, SIGKILL);
    left.push_back({member, err == ESRCH ? 0 : err});
  }
  return left;
}

std::vector<StubbornProcess> ProcessTree::KillAll(milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  milliseconds pause = kFirstPause;
  for (int empty_looks = 0; empty_looks < 2;) {
    ReapOrphans();
    std::vector<StubbornProcess> left = KillOnce();
    if (left.empty()) {
      ++empty_looks;
      continue;
    }
    empty_looks = 0;
    if (std::chrono::steady_clock::now() >= deadline) {
      return left;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  ReapOrphans();
  return {};
}

void ProcessTree::Suspend() {
  bool changed = true;
  for (int pass = 0; changed && pass < kSuspendPasses; ++pass) {
    changed = false;
    for (const ProcessInfo& member : Members()) {
      const ProcessKey key = {member.pid, member.start_time};
      if (member.state != 'T' && member.state != 't' && !suspended_.contains(key) &&
          SignalProcess(member, SIGSTOP) == 0) {
        suspended_.insert(key);
        changed = true;
      }
    }
  }
}

void ProcessTree::Resume() {
  for (const ProcessKey& key : suspended_) {
    ProcessInfo process;
    process.pid = key.pid;
    process.start_time = key.start_time;
    SignalProcess(process, SIGCONT);
  }
  suspended_.clear();
}

// Not waitid(P_ALL, WNOWAIT): it returns the same unreaped worker again and again, and the orphans
// behind it are never seen.
void ProcessTree::ReapOrphans(const OrphanCallback& callback) {
  for (const pid_t pid : OwnChildren(options_.use_children_files)) {
    if (Registered(pid)) {
      continue;
    }
    const std::optional<ExitStatus> status = ReapIfDead(pid);
    if (status && callback) {
      callback(pid, *status);
    }
  }
}

}  // namespace ddprun
