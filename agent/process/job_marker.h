#pragma once

// JobMarker: the variable by which a process is known as part of a job, even after it has left its
// parent, its group and its session. A job started by a worker of another job belongs to both: its
// marker lists the outer ids first, "DDPRUN_JOB_ID=outer:inner".

#include <string>
#include <string_view>

namespace ddprun {

class JobMarker {
 public:
  static constexpr const char* kVariable = "DDPRUN_JOB_ID";

  // `outer` is the value of the variable in the launcher's own environment, empty when it has none.
  // The id must not be empty and hold no colon.
  JobMarker(std::string id, std::string_view outer);

  // For the environment of every worker; replaces an inherited one.
  std::string assignment() const;
  const std::string& value() const { return value_; }  // Without the variable's name.
  const std::string& id() const { return id_; }

  // Whether a value of the variable names this job.
  bool matches(std::string_view value) const;

 private:
  std::string id_;
  std::string value_;
};

}  // namespace ddprun
