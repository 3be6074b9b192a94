#include "agent/worker_group.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <optional>
#include <utility>

#include "agent/process/spawner.h"
#include "rendezvous/base/check.h"

namespace ddprun {
namespace {

// The descriptor that a worker's stream is given, and what must be kept open until the spawn.
struct OpenStream {
  StandardStream target = StandardStream::Inherit();
  std::unique_ptr<UniqueFd> fd;
};

Expected<OpenStream> OpenFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) {
    const int error = errno;
    return Fail(error, fmt::format("open the log file '{}'", path));
  }
  OpenStream stream;
  stream.fd = std::make_unique<UniqueFd>(std::move(fd));
  stream.target = StandardStream::To(*stream.fd);
  return stream;
}

Expected<OpenStream> Open(LogPump& pump, const StreamPlan& plan, StdStream which,
                          std::uint32_t local_rank) {
  switch (plan.route) {
    case StreamPlan::Route::kInherit:
      return OpenStream{};
    case StreamPlan::Route::kNull: {
      OpenStream stream;
      stream.target = StandardStream::Null();
      return stream;
    }
    case StreamPlan::Route::kFile:
      return OpenFile(plan.file);
    case StreamPlan::Route::kTee:
      break;
  }
  Expected<UniqueFd> pipe = pump.Attach(plan, which, local_rank);
  if (!pipe) {
    return tl::unexpected<Error>(pipe.error());
  }
  OpenStream stream;
  stream.fd = std::make_unique<UniqueFd>(std::move(*pipe));
  stream.target = StandardStream::To(*stream.fd);
  return stream;
}

}  // namespace

struct WorkerGroup::Entry {
  explicit Entry(asio::io_context& io) : death(io) {}

  std::uint32_t local_rank = 0;
  pid_t pid = 0;
  bool reaped = false;
  Pidfd pidfd;
  asio::posix::stream_descriptor death;  // A duplicate of the pidfd, which Asio owns.
};

WorkerGroup::WorkerGroup(std::uint32_t local_world_size, WorkerGroupParts parts,
                         ExitCallback on_exit)
    : parts_(parts), on_exit_(std::move(on_exit)), entries_(local_world_size) {}

WorkerGroup::~WorkerGroup() = default;

Expected<void> WorkerGroup::StartWorker(const WorkerSpec& spec) {
  Expected<OpenStream> out = Open(parts_.pump, spec.out, StdStream::kOut, spec.local_rank);
  if (!out) {
    return tl::unexpected<Error>(out.error());
  }
  Expected<OpenStream> err = Open(parts_.pump, spec.err, StdStream::kErr, spec.local_rank);
  if (!err) {
    return tl::unexpected<Error>(err.error());
  }
  SpawnRequest request;
  request.name = fmt::format("worker {}", spec.local_rank);
  request.argv = spec.argv;
  request.environment = spec.environment;
  request.in = spec.null_stdin ? StandardStream::Null() : StandardStream::Inherit();
  request.out = out->target;
  request.err = err->target;
  request.new_session = spec.new_session;
  request.signals = parts_.start_signals;
  request.cgroup = parts_.tree.cgroup();
  Expected<SpawnedProcess> process = Spawn(request);
  if (!process) {
    return tl::unexpected<Error>(process.error());
  }
  parts_.tree.AddWorker(process->pid, spec.new_session);
  // Without the guardian the kernel's parent-death signal is the only net; nothing else changes.
  static_cast<void>(parts_.guardian.WatchWorker(process->pid));
  auto entry = std::make_unique<Entry>(parts_.io);
  entry->local_rank = spec.local_rank;
  entry->pid = process->pid;
  entry->pidfd = std::move(process->pidfd);
  Watch(*entry);
  entries_[spec.local_rank] = std::move(entry);
  return {};
}

void WorkerGroup::Watch(Entry& entry) {
  Expected<UniqueFd> duplicate = entry.pidfd.Duplicate();
  DDP_CHECK(
      duplicate.has_value());  // Descriptors ran out after the start: the environment is broken.
  entry.death.assign(duplicate->Release());
  entry.death.async_wait(asio::posix::stream_descriptor::wait_read,
                         [this, &entry](const asio::error_code& error) {
                           if (!error) {
                             Reap(entry);
                           }
                         });
}

void WorkerGroup::Reap(Entry& entry) {
  Expected<ExitStatus> status = entry.pidfd.Wait();
  DDP_CHECK(status.has_value());  // Nobody else reaps our workers.
  entry.reaped = true;
  entry.death.close();
  parts_.tree.WorkerReaped(entry.pid);
  on_exit_(entry.local_rank, *status);
}

pid_t WorkerGroup::pid(std::uint32_t local_rank) const {
  return entries_[local_rank] ? entries_[local_rank]->pid : 0;
}

std::vector<pid_t> WorkerGroup::pids() const {
  std::vector<pid_t> pids;
  for (const auto& entry : entries_) {
    pids.push_back(entry ? entry->pid : 0);
  }
  return pids;
}

bool WorkerGroup::running(std::uint32_t local_rank) const {
  return entries_[local_rank] && !entries_[local_rank]->reaped;
}

std::size_t WorkerGroup::running_count() const {
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const auto& entry) { return entry && !entry->reaped; }));
}

std::vector<pid_t> WorkerGroup::running_pids() const {
  std::vector<pid_t> pids;
  for (const auto& entry : entries_) {
    pids.push_back(entry && !entry->reaped ? entry->pid : 0);
  }
  return pids;
}

void WorkerGroup::SignalWorkers(int signal) {
  for (const auto& entry : entries_) {
    if (entry && !entry->reaped) {
      parts_.tree.SignalGroup(entry->pid, signal);
    }
  }
}

}  // namespace ddprun
