#include "agent/gpu/inventory_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "agent/core/exit_status.h"
#include "agent/gpu/inventory_child.h"

namespace ddprun {
namespace {

// An inventory of 1,024 GPUs has some 200 KB; more comes from a child gone mad.
constexpr std::size_t kMaxMessage = 4U << 20U;

// How long a killed child may take to leave the driver. One that hangs there does not die at all,
// and is left to whoever reaps orphans: the agent, or init.
constexpr Duration kReapLimit = std::chrono::milliseconds(100);

// The same after a good answer: the driver may shut its GPUs down in the child's end, which is not
// for the launch to wait for.
constexpr Duration kExitLimit = std::chrono::milliseconds(20);

timespec TimeLeft(TimePoint until) {
  const Duration left = std::max(until - MonotonicNow(), Duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  return {seconds.count(), (left - seconds).count()};
}

// Whether `fd` is readable before `until`. A signal whose handler returns does not end the wait.
bool WaitReadable(int fd, TimePoint until, const sigset_t* mask) {
  while (true) {
    pollfd poll{fd, POLLIN, 0};
    const timespec left = TimeLeft(until);
    const int ready = ::ppoll(&poll, 1, &left, mask);
    if (ready > 0) {
      return true;
    }
    if (ready == 0 || errno != EINTR) {
      return false;
    }
  }
}

bool WaitForExit(pid_t child, Duration limit) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  return pidfd && WaitReadable(pidfd.get(), MonotonicNow() + limit, nullptr);
}

ExitStatus ToExitStatus(int status) {
  if (WIFSIGNALED(status)) {
    return {ExitStatus::Kind::kSignaled, WTERMSIG(status), WCOREDUMP(status) != 0};
  }
  return {ExitStatus::Kind::kExited, WEXITSTATUS(status), false};
}

std::string Seconds(Duration duration) {
  return fmt::format("{:g} s", std::chrono::duration<double>(duration).count());
}

}  // namespace

InventoryReader InventoryReader::Start(InventoryOptions options) {
  InventoryReader reader;
  reader.options_ = std::move(options);
  reader.deadline_ = MonotonicNow() + reader.options_.deadline;
  if (!NvmlSeemsInstalled(reader.options_.library_paths) &&
      !DriverDeviceExists(reader.options_.roots)) {
    reader.without_child_.state = DriverState::kNoLibrary;
    reader.without_child_.reason =
        "neither libnvidia-ml.so.1 nor /dev/nvidiactl is here: no NVIDIA driver, or a container "
        "that was given no GPU";
    return reader;
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    reader.without_child_ = reader.Broken("no pipe: " + ErrnoText(errno));
    return reader;
  }
  reader.pipe_ = UniqueFd(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t parent = ::getpid();
  reader.child_ = ::fork();
  if (reader.child_ == 0) {
    RunInventoryChild(reader.options_, std::move(write_end), parent);
  }
  if (reader.child_ < 0) {
    reader.without_child_ = reader.Broken("fork: " + ErrnoText(errno));
  }
  return reader;
}

InventoryReader::InventoryReader(InventoryReader&& other) noexcept
    : options_(std::move(other.options_)),
      deadline_(other.deadline_),
      without_child_(std::move(other.without_child_)),
      child_(std::exchange(other.child_, -1)),
      child_status_(other.child_status_),
      pipe_(std::move(other.pipe_)),
      received_(std::move(other.received_)) {}

InventoryReader::~InventoryReader() {
  EndChild(kReapLimit);
}

DeviceInventory InventoryReader::Finish(const sigset_t* wait_mask) {
  if (child_ < 0) {
    return without_child_;
  }
  const bool finished = Receive(wait_mask);
  InventoryMessage message = DecodeInventory(received_);
  if (message.inventory) {
    EndChild(kExitLimit);
    return std::move(*message.inventory);
  }
  if (!finished) {
    EndChild(kReapLimit);
    return NotAnswering(message.last_stage);
  }
  WaitForExit(child_, kReapLimit);  // Before the kill, which would hide the child's own end.
  EndChild(kReapLimit);
  return Broken(fmt::format("the process that asks NVML ended with {} ({})",
                            Describe(ToExitStatus(child_status_)),
                            message.last_stage.empty() ? "at its start" : message.last_stage));
}

// True at the end of the message, false when the deadline came first.
bool InventoryReader::Receive(const sigset_t* wait_mask) {
  std::array<char, 16384> buffer{};
  while (received_.size() < kMaxMessage) {
    if (!WaitReadable(pipe_.get(), deadline_, wait_mask)) {
      return false;
    }
    const ssize_t got = ::read(pipe_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return true;
    }
    received_.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return true;
}

// By pid, which cannot have passed to another process before it is reaped here. SIGKILL after the
// child's own end changes nothing.
void InventoryReader::EndChild(Duration limit) {
  if (child_ < 0) {
    return;
  }
  const pid_t child = std::exchange(child_, -1);
  ::kill(child, SIGKILL);
  WaitForExit(child, limit);
  ::waitpid(child, &child_status_, WNOHANG);
}

DeviceInventory InventoryReader::NotAnswering(const std::string& last_stage) const {
  DeviceInventory inventory;
  inventory.state = DriverState::kNotAnswering;
  inventory.reason =
      fmt::format("NVML did not answer within {}{}", Seconds(options_.deadline),
                  last_stage.empty() ? "" : fmt::format(" (last seen at: {})", last_stage));
  inventory.devices = ListPciDevices(options_.roots);
  inventory.warnings.push_back(fmt::format(
      "{}: a hung driver; going on {}", inventory.reason,
      inventory.devices.empty()
          ? "without GPU information"
          : fmt::format("with the kernel's list of {} GPUs", inventory.devices.size())));
  return inventory;
}

DeviceInventory InventoryReader::Broken(const std::string& problem) const {
  DeviceInventory inventory;
  inventory.state = DriverState::kBroken;
  inventory.reason = problem;
  inventory.warnings.push_back("the GPUs cannot be listed: " + problem);
  return inventory;
}

DeviceInventory ReadDeviceInventory(InventoryOptions options, const sigset_t* wait_mask) {
  return InventoryReader::Start(std::move(options)).Finish(wait_mask);
}

}  // namespace ddprun
