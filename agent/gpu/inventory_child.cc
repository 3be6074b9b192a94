#include "agent/gpu/inventory_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/gpu/nvml_inventory.h"

namespace ddprun {
namespace {

constexpr int kPipe = 3;

// Signals as a fresh program has them: what the parent ignores stays ignored (nohup), the rest is
// deadly and unblocked, so that Ctrl-C ends this process with the others of its group.
void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      action = {};
      action.sa_handler = SIG_DFL;
      ::sigaction(signal, &action, nullptr);
    }
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// For kernels before 5.9, which have no close_range(2).
void CloseOneByOne() {
  std::vector<int> open;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    open.push_back(std::atoi(entry->path().filename().c_str()));
  }
  for (const int fd : open) {
    if (fd > kPipe) {
      ::close(fd);
    }
  }
}

// A child stuck in the driver cannot be killed. It must not hold the launcher's output open for
// whoever reads it, nor a lock or a port. Leaves `pipe` as descriptor 3 and nothing else.
bool KeepOnly(UniqueFd pipe) {
  if (::dup2(pipe.get(), kPipe) < 0) {
    return false;
  }
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < kPipe; ++fd) {
    if (null < 0) {
      ::close(fd);
    } else {
      ::dup2(null, fd);
    }
  }
  pipe.Release();  // Either descriptor 3 itself, or closed here.
  if (::syscall(SYS_close_range, kPipe + 1, ~0U, 0) != 0) {
    CloseOneByOne();
  }
  return true;
}

bool WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(kPipe, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void TellStage(std::string_view stage) {
  WriteAll(fmt::format("at\t{}\n", stage));
}

DeviceInventory WithoutLibrary(const KernelRoots& roots, const std::string& problem) {
  TellStage("the driver's files under /proc");
  DeviceInventory inventory;
  inventory.reason = problem;
  inventory.devices = ListDriverDevices(roots);
  if (inventory.devices.empty()) {
    inventory.state = DriverState::kNoLibrary;
    return inventory;
  }
  inventory.state = DriverState::kListed;
  inventory.warnings.push_back(fmt::format(
      "NVML is not here ({}), so the kernel's list of {} GPUs is used, which shows no MIG "
      "instances; in a container, add 'utility' to NVIDIA_DRIVER_CAPABILITIES",
      problem, inventory.devices.size()));
  return inventory;
}

DeviceInventory ReadInventory(const InventoryOptions& options) {
  TellStage("loading the library");
  const Expected<NvmlTable> nvml = LoadNvml(options.library_paths);
  return nvml ? ReadNvmlInventory(*nvml, TellStage)
              : WithoutLibrary(options.roots, nvml.error().message);
}

}  // namespace

void RunInventoryChild(const InventoryOptions& options, UniqueFd pipe, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ResetSignals();
  // The parent may have died before prctl was in force.
  if (::getppid() != parent || !KeepOnly(std::move(pipe))) {
    ::_exit(1);
  }
  const bool written = WriteAll(EncodeInventory(ReadInventory(options)));
  ::_exit(written ? 0 : 1);
}

}  // namespace ddprun
