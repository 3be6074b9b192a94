#include "agent/process/spawn_child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

// Sanitizers keep shadows of stacks and threads, which a child in borrowed memory would leave
// wrong.
#define DDP_CHILD_CODE __attribute__((no_sanitize("address", "undefined", "thread")))

namespace ddprun {
namespace {

constexpr int kLastSignal = 64;
constexpr std::size_t kKernelSigsetSize = 8;
constexpr int kFailedStart = 127;

// The kernel's struct of rt_sigaction(2): handler, flags, restorer, mask, on x86-64 and on aarch64.
struct KernelSigaction {
  std::uintptr_t handler;
  std::uint64_t flags;
  std::uintptr_t restorer;
  std::uint64_t mask;
};

struct Linux64Dirent {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

DDP_CHILD_CODE void Report(const ChildPlan& plan, SpawnStage stage, int err, int candidate) {
  const SpawnReport report = {stage, err, candidate};
  ::syscall(SYS_write, plan.report, &report, sizeof report);
}

[[noreturn]] DDP_CHILD_CODE void Exit() {
  for (;;) {
    ::syscall(SYS_exit_group, kFailedStart);
  }
}

[[noreturn]] DDP_CHILD_CODE void Abandon(const ChildPlan& plan, SpawnStage stage, int err,
                                         int candidate = 0) {
  Report(plan, stage, err, candidate);
  Exit();
}

// Every signal is blocked meanwhile. Handlers of the launcher must be gone before the mask is
// opened, or the child would run them in the launcher's memory.
DDP_CHILD_CODE void ResetSignals(const ChildPlan& plan) {
  for (int signal = 1; signal <= kLastSignal; ++signal) {
    const bool ignore = (plan.ignored_signals >> (signal - 1) & 1) != 0;
    KernelSigaction action = {ignore ? std::uintptr_t{1} : std::uintptr_t{0}, 0, 0, 0};
    ::syscall(SYS_rt_sigaction, signal, &action, nullptr, kKernelSigsetSize);
  }
}

DDP_CHILD_CODE void JoinCgroup(const ChildPlan& plan) {
  if (plan.cgroup_procs >= 0 && ::syscall(SYS_write, plan.cgroup_procs, "0", 1) != 1) {
    Report(plan, SpawnStage::kCgroup, errno, 0);
  }
}

DDP_CHILD_CODE void LeadSession(const ChildPlan& plan) {
  if (plan.new_session && ::syscall(SYS_setsid) < 0) {
    Abandon(plan, SpawnStage::kSession, errno);
  }
}

// The launcher may have died before the prctl; then nobody would send the signal, so we end here.
DDP_CHILD_CODE void DieWithParent(const ChildPlan& plan) {
  if (plan.parent_death_signal == 0) {
    return;
  }
  if (::syscall(SYS_prctl, PR_SET_PDEATHSIG, plan.parent_death_signal, 0, 0, 0) != 0) {
    Abandon(plan, SpawnStage::kParentDeath, errno);
  }
  if (::syscall(SYS_getppid) != plan.parent) {
    Exit();
  }
}

// Sources among 0-2 move up first: otherwise placing one stream could overwrite the source of the
// next.
DDP_CHILD_CODE void PlaceStreams(const ChildPlan& plan) {
  std::array<int, 3> sources = plan.streams;
  for (int& source : sources) {
    if (source < 0 || source > 2) {
      continue;
    }
    source = static_cast<int>(::syscall(SYS_fcntl, source, F_DUPFD_CLOEXEC, 3));
    if (source < 0) {
      Abandon(plan, SpawnStage::kStandardStreams, errno);
    }
  }
  for (int target = 0; target <= 2; ++target) {
    const int source = sources[static_cast<std::size_t>(target)];
    if (source >= 0 && ::syscall(SYS_dup3, source, target, 0) < 0) {
      Abandon(plan, SpawnStage::kStandardStreams, errno);
    }
  }
}

// The number that a name in /proc/self/fd stands for; -1 for "." and "..".
DDP_CHILD_CODE int ToDescriptor(const char* name) {
  int fd = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9') {
      return -1;
    }
    fd = fd * 10 + (*name - '0');
  }
  return fd;
}

// For kernels before 5.11, which lack CLOSE_RANGE_CLOEXEC. Marking instead of closing leaves the
// folder unchanged while it is read, and the report pipe open until exec.
DDP_CHILD_CODE bool MarkByFolder() {
  const long folder =
      ::syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (folder < 0) {
    return false;
  }
  alignas(Linux64Dirent) char buffer[4096];
  long size = 0;
  while ((size = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const Linux64Dirent*>(buffer + at);
      const int fd = ToDescriptor(entry->name);
      if (fd > 2) {
        ::syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
      }
      at += entry->length;
    }
  }
  return size == 0;
}

DDP_CHILD_CODE void MarkDescriptors(const ChildPlan& plan) {
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    const int err = errno;
    if (!MarkByFolder()) {
      Abandon(plan, SpawnStage::kCloseDescriptors, err);
    }
  }
  for (std::size_t i = 0; i < plan.keep_open_count; ++i) {
    if (::syscall(SYS_fcntl, plan.keep_open[i], F_SETFD, 0) != 0) {
      Abandon(plan, SpawnStage::kCloseDescriptors, errno);
    }
  }
}

// Whether execvp(3) would try the next folder of PATH.
DDP_CHILD_CODE bool IsAbsence(int err) {
  return err == ENOENT || err == ENOTDIR || err == ESTALE || err == ENODEV || err == ETIMEDOUT;
}

// As execvp(3): a candidate without permission is remembered while the search goes on.
[[noreturn]] DDP_CHILD_CODE void Exec(const ChildPlan& plan) {
  int err = ENOENT;
  int culprit = 0;
  for (int i = 0; plan.candidates[i] != nullptr; ++i) {
    ::syscall(SYS_execve, plan.candidates[i], plan.argv, plan.environment);
    const int failure = errno;
    if (failure != EACCES && !IsAbsence(failure)) {
      Abandon(plan, SpawnStage::kExec, failure, i);
    }
    if (err != EACCES) {
      err = failure;
      culprit = i;
    }
  }
  Abandon(plan, SpawnStage::kExec, err, culprit);
}

}  // namespace

[[noreturn]] DDP_CHILD_CODE void RunChild(const ChildPlan& plan) {
  ResetSignals(plan);
  JoinCgroup(plan);
  LeadSession(plan);
  DieWithParent(plan);
  PlaceStreams(plan);
  MarkDescriptors(plan);
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &plan.signal_mask, nullptr, kKernelSigsetSize);
  Exec(plan);
}

}  // namespace ddprun
