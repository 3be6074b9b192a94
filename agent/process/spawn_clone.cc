#include "agent/process/spawn_clone.h"

#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace ddprun {
namespace {

constexpr std::size_t kStackSize = std::size_t{64} * 1024;  // RunChild needs about 5 KiB.

// The child's own stack: as clone3 returns twice in the same memory, the child must not use the
// caller's.
class ChildStack {
 public:
  ChildStack()
      : memory_(::mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {}
  ChildStack(const ChildStack&) = delete;
  ChildStack& operator=(const ChildStack&) = delete;
  ~ChildStack() {
    if (valid()) {
      ::munmap(memory_, kStackSize);
    }
  }

  bool valid() const { return memory_ != MAP_FAILED; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory_); }

 private:
  void* memory_;
};

// C code cannot follow the child onto its new, empty stack, so the first two instructions of the
// child are written here: call RunChild, which never returns.
long Clone3(clone_args& args, const ChildPlan& plan) {
  void (*const entry)(const ChildPlan&) = &RunChild;
#if defined(__x86_64__)
  long result = SYS_clone3;
  __asm__ volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "movq %[plan], %%rdi\n\t"
      "callq *%[entry]\n\t"
      "ud2\n"
      "1:"
      : "+a"(result)
      : "D"(&args), "S"(sizeof args), [plan] "r"(&plan), [entry] "r"(entry)
      : "rcx", "r11", "cc", "memory");
  return result;
#elif defined(__aarch64__)
  register long number __asm__("x8") = SYS_clone3;
  register std::uintptr_t first __asm__("x0") = reinterpret_cast<std::uintptr_t>(&args);
  register std::size_t second __asm__("x1") = sizeof args;
  __asm__ volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x0, %[plan]\n\t"
      "blr %[entry]\n\t"
      "brk #1\n"
      "1:"
      : "+r"(first)
      : "r"(number), "r"(second), [plan] "r"(&plan), [entry] "r"(entry)
      : "cc", "memory");
  return static_cast<long>(first);
#else
  static_cast<void>(args);
  static_cast<void>(plan);
  static_cast<void>(entry);
  return -ENOSYS;
#endif
}

}  // namespace

__attribute__((noinline)) pid_t VforkChild(const ChildPlan& plan) {
  const pid_t pid = ::vfork();
  if (pid == 0) {
    RunChild(plan);
  }
  return pid;
}

pid_t CloneChildInto(const UniqueFd& cgroup, const ChildPlan& plan) {
  const ChildStack stack;
  if (!stack.valid()) {
    return -1;
  }
  clone_args args = {};
  args.flags = __u64{CLONE_VM} | __u64{CLONE_VFORK} | __u64{CLONE_INTO_CGROUP};
  args.exit_signal = SIGCHLD;
  args.stack = stack.address();
  args.stack_size = kStackSize;
  args.cgroup = static_cast<__u64>(cgroup.get());
  const long result = Clone3(args, plan);
  if (result < 0) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return static_cast<pid_t>(result);
}

}  // namespace ddprun
