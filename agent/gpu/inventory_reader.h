#pragma once

// InventoryReader: gets the DeviceInventory of this machine without ever hanging with its driver.
//
// All NVML calls run in a child process with a deadline. The child is a plain fork(2), so Start()
// must be called while the calling process has only its main thread: before gRPC, Asio or a log
// thread exist. The child touches nothing of the parent: it drops every descriptor but its pipe, it
// dies with the parent (PR_SET_PDEATHSIG), and it ends with _exit.
//
// Where neither an NVML library nor /dev/nvidiactl is in sight, nothing is forked or loaded.
//
//   InventoryReader reader = InventoryReader::Start({});
//   ...                                          // Parse options, say; the child works meanwhile.
//   DeviceInventory inventory = reader.Finish(&mask_at_entry);

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "agent/gpu/device_inventory.h"
#include "agent/gpu/kernel_devices.h"
#include "agent/gpu/nvml_table.h"
#include "agent/process/unique_fd.h"
#include "rendezvous/base/clock.h"

namespace ddprun {

struct InventoryOptions {
  // From Start(). A driver without persistence mode needs seconds to initialise its GPUs.
  Duration deadline = std::chrono::seconds(10);
  std::vector<std::string> library_paths = NvmlLibraryPaths();
  KernelRoots roots;
};

class InventoryReader {
 public:
  // Forks the child, or finds out that there is nothing to ask. Main thread, no other thread.
  static InventoryReader Start(InventoryOptions options);

  InventoryReader(InventoryReader&& other) noexcept;
  InventoryReader& operator=(InventoryReader&&) = delete;
  // Kills and reaps a child that was never waited for.
  ~InventoryReader();

  // Waits for the answer, at most until the deadline; what then is missing becomes a warning in the
  // inventory, never a failure. `wait_mask` is the signal mask during the wait (ppoll(2)): pass the
  // mask from before the launcher blocked its signals, so that Ctrl-C still ends the process.
  // nullptr leaves the mask as it is. Call once.
  DeviceInventory Finish(const sigset_t* wait_mask);

 private:
  InventoryReader() = default;
  bool Receive(const sigset_t* wait_mask);
  void EndChild(Duration limit);
  DeviceInventory NotAnswering(const std::string& last_stage) const;
  DeviceInventory Broken(const std::string& problem) const;

  InventoryOptions options_;
  TimePoint deadline_;
  DeviceInventory without_child_;  // The answer when no child was needed.
  pid_t child_ = -1;               // Ours until reaped, so its number cannot be another's.
  int child_status_ = 0;           // As waitpid(2) gave it; 0 while it was not reaped.
  UniqueFd pipe_;                  // Read end.
  std::string received_;
};

// Start and Finish in one.
DeviceInventory ReadDeviceInventory(InventoryOptions options, const sigset_t* wait_mask);

}  // namespace ddprun
