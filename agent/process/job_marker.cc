#include "agent/process/job_marker.h"

#include <fmt/format.h>

#include <algorithm>

#include "rendezvous/base/check.h"
#include "rendezvous/base/text.h"

namespace ddprun {

JobMarker::JobMarker(std::string id, std::string_view outer) : id_(std::move(id)) {
  DDP_CHECK(!id_.empty() && id_.find(':') == std::string::npos);
  value_ = outer.empty() ? id_ : fmt::format("{}:{}", outer, id_);
}

std::string JobMarker::assignment() const {
  return fmt::format("{}={}", kVariable, value_);
}

bool JobMarker::matches(std::string_view value) const {
  const std::vector<std::string> ids = Split(value, ':');
  return std::find(ids.begin(), ids.end(), id_) != ids.end();
}

}  // namespace ddprun
