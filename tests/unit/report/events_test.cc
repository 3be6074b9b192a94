#include "launcher/report/events.h"

#include <csignal>

#include "tests/support/catch.h"

namespace ddprun {
namespace {

const EventContext kContext{"none", "default", "localhost", "c10d", "/usr/bin/python"};

// The expectations are lines that torchrun 2.15 printed, with other identifiers.
TEST_CASE("the agent's events are torch's lines") {
  CHECK(FormatAgentEvent(kContext, {}, {EventState::kRendezvous, 39.827911000088534, {}}) ==
        R"({"name": "torchelastic.worker.status.RENDEZVOUS", "source": "AGENT", "timestamp": 0, )"
        R"("metadata": {"run_id": "none", "global_rank": null, "group_rank": null, )"
        R"("worker_id": null, "role": "default", "hostname": "localhost", "state": "RENDEZVOUS", )"
        R"("total_run_time": 0, "rdzv_backend": "c10d", "raw_error": null, )"
        R"("metadata": "{\"group_world_size\": null, \"entry_point\": \"python\"}", )"
        R"("agent_restarts": 0, "duration_ms": 39.827911000088534}})");
  EventGroup group{0, 1, 4, 2};
  CHECK(FormatAgentEvent(kContext, group, {EventState::kSucceeded, {}, {}}) ==
        R"({"name": "torchelastic.worker.status.SUCCEEDED", "source": "AGENT", "timestamp": 0, )"
        R"("metadata": {"run_id": "none", "global_rank": null, "group_rank": 0, )"
        R"("worker_id": null, "role": "default", "hostname": "localhost", "state": "SUCCEEDED", )"
        R"("total_run_time": 4, "rdzv_backend": "c10d", "raw_error": null, )"
        R"("metadata": "{\"group_world_size\": 1, \"entry_point\": \"python\"}", )"
        R"("agent_restarts": 2, "duration_ms": null}})");
  const std::string failed = FormatAgentEvent(kContext, group, {EventState::kFailed, {}, "why\n"});
  CHECK(failed.find(R"("raw_error": "why\n")") != std::string::npos);
  CHECK(FormatAgentEvent(kContext, {}, {EventState::kAssignWorkerRanks, 1.0, {}})
            .find(R"("duration_ms": 1.0})") != std::string::npos);
}

TEST_CASE("a worker's start is torch's line") {
  const EventWorker worker{1, 5, 5, 8, 9921};
  CHECK(FormatWorkerEvent(kContext, {2, 4, 0, 0}, EventState::kStart, worker, nullptr) ==
        R"({"name": "torchelastic.worker.status.START", "source": "WORKER", "timestamp": 0, )"
        R"("metadata": {"run_id": "none", "global_rank": 5, "group_rank": 2, )"
        R"("worker_id": "9921", "role": "default", "hostname": "localhost", "state": "START", )"
        R"("total_run_time": 0, "rdzv_backend": "c10d", "raw_error": null, )"
        R"("metadata": "{\"group_world_size\": 4, \"entry_point\": \"python\", )"
        R"(\"local_rank\": [1], \"role_rank\": [5], \"role_world_size\": [8], )"
        R"(\"exit_code\": [null], \"worker_pid\": [null]}", )"
        R"("agent_restarts": 0, "duration_ms": null}})");
}

std::string Failed(const ProcessFailure& failure) {
  return FormatWorkerEvent(kContext, {0, 1, 4, 0}, EventState::kFailed, {0, 0, 0, 2, 9}, &failure);
}

TEST_CASE("a worker's failure carries its record as torch's does") {
  ProcessFailure failure;
  failure.pid = 9;
  failure.status = {ExitStatus::Kind::kExited, 7, false};
  CHECK(Failed(failure).find(
            R"("raw_error": "{\"message\": \"<NONE>\", \"errorTraits\": {\"category\": )"
            R"(\"system_terminated_error\", \"retryability\": \"False\"}}", )") !=
        std::string::npos);
  CHECK(Failed(failure).find(R"(\"exit_code\": [7], \"worker_pid\": [9]})") != std::string::npos);
  failure.status = {ExitStatus::Kind::kSignaled, SIGTERM, false};
  CHECK(Failed(failure).find(R"("raw_error": "{\"message\": \"<NONE>\"}", )") != std::string::npos);
  CHECK(Failed(failure).find(R"(\"exit_code\": [-15])") != std::string::npos);
  failure.headline = "t";
  failure.record = R"({"message": "t", "timestamp": 1})";
  CHECK(Failed(failure).find(R"("raw_error": "{\"message\": \"t\", \"timestamp\": 1}")") !=
        std::string::npos);
}

TEST_CASE("text from outside stays on one ASCII line") {
  EventContext context = kContext;
  context.role = "a\nb\xff";
  const std::string event = FormatAgentEvent(context, {}, {});
  CHECK(event.find('\n') == std::string::npos);
  CHECK(event.find(R"("role": "a\nb\ufffd")") != std::string::npos);
}

TEST_CASE("only console prints, and only at LOGLEVEL INFO or below") {
  std::string printed;
  const auto sink = [&printed](std::string_view line) { printed += line; };
  for (const char* quiet : {"null", "dynamic_rendezvous"}) {
    const auto log = EventLog::Make(quiet, true, sink);
    REQUIRE(log);
    CHECK_FALSE(log->enabled());
    log->Print("x");
  }
  EventLog::Make("console", false, sink)->Print("x");
  CHECK(printed.empty());
  const auto log = EventLog::Make("console", true, sink);
  CHECK(log->enabled());
  log->Print("x");
  CHECK(printed == "x\n");
}

TEST_CASE("an unknown handler is an error that names the known ones") {
  const auto log = EventLog::Make("zzz", true, nullptr);
  REQUIRE_FALSE(log);
  CHECK(log.error().message ==
        "--event-log-handler 'zzz': no such handler; console, null and dynamic_rendezvous are "
        "known");
}

}  // namespace
}  // namespace ddprun
