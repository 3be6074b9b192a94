#include "agent/core/worker_environment.h"

#include "tests/support/catch.h"

namespace ddprun {
namespace {

GroupEnvironment TwoWorkers() {
  GroupEnvironment group;
  group.ranks = AssignRanks({{"default", 2}}).front();
  group.master_addr = "127.0.0.1";
  group.master_port = 4711;
  group.restart_count = 1;
  group.max_restarts = 3;
  group.run_id = "job";
  group.signals_to_handle = "SIGTERM";
  return group;
}

TEST_CASE("a worker gets the whole contract over the launcher's own environment") {
  const EnvironmentMap base{
      {"HOME", "/h"}, {"RANK", "9"}, {"MASTER_PORT", "1"}, {"WORLD_SIZE", "77"}};
  const EnvironmentMap worker =
      WorkerEnvironment(base, TwoWorkers(), {1, "/logs/1/error.json", {}});
  const EnvironmentMap expected{{"GROUP_RANK", "0"},
                                {"GROUP_WORLD_SIZE", "1"},
                                {"HOME", "/h"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "2"},
                                {"MASTER_ADDR", "127.0.0.1"},
                                {"MASTER_PORT", "4711"},
                                {"PYTHONFAULTHANDLER", "1"},
                                {"RANK", "1"},
                                {"ROLE_NAME", "default"},
                                {"ROLE_RANK", "1"},
                                {"ROLE_WORLD_SIZE", "2"},
                                {"TORCHELASTIC_ERROR_FILE", "/logs/1/error.json"},
                                {"TORCHELASTIC_MAX_RESTARTS", "3"},
                                {"TORCHELASTIC_RESTART_COUNT", "1"},
                                {"TORCHELASTIC_RUN_ID", "job"},
                                {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM"},
                                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                                {"WORLD_SIZE", "2"}};
  CHECK(worker == expected);
}

TEST_CASE("what the user has set is passed on, also when it is empty") {
  const EnvironmentMap base{{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"},
                            {"PYTHONFAULTHANDLER", ""},
                            {"OMP_NUM_THREADS", "5"},
                            {"TORCHELASTIC_TIMER_FILE", "/mine"}};
  GroupEnvironment group = TwoWorkers();
  group.omp_num_threads = 8;
  const EnvironmentMap worker = WorkerEnvironment(base, group, {0, "", {}});
  CHECK(worker.at("TORCH_NCCL_ASYNC_ERROR_HANDLING") == "0");
  CHECK(worker.at("PYTHONFAULTHANDLER").empty());
  CHECK(worker.at("OMP_NUM_THREADS") == "5");
  CHECK(worker.at("TORCHELASTIC_TIMER_FILE") == "/mine");
  CHECK(worker.at("TORCHELASTIC_ERROR_FILE").empty());
}

TEST_CASE("overrides come last: virtual local rank and devices") {
  GroupEnvironment group = TwoWorkers();
  group.use_agent_store = false;
  group.timer_file = "/t/fifo";
  const EnvironmentMap worker =
      WorkerEnvironment({}, group, {1, "", {{"LOCAL_RANK", "0"}, {"CUDA_VISIBLE_DEVICES", "6"}}});
  CHECK(worker.at("LOCAL_RANK") == "0");
  CHECK(worker.at("RANK") == "1");
  CHECK(worker.at("CUDA_VISIBLE_DEVICES") == "6");
  CHECK(worker.at("TORCHELASTIC_USE_AGENT_STORE") == "False");
  CHECK(worker.at("TORCHELASTIC_TIMER_FILE") == "/t/fifo");
}

TEST_CASE("the block holds every variable once") {
  CHECK(ToEnvironmentBlock({{"B", "2=2"}, {"A", ""}}) == std::vector<std::string>{"A=", "B=2=2"});
}

}  // namespace
}  // namespace ddprun
