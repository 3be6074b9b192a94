#pragma once

// The two ways of making the child that Spawn uses. Private to spawner.cc.

#include <sys/types.h>

#include "agent/process/spawn_child.h"
#include "agent/process/unique_fd.h"

namespace ddprun {

// Both suspend the caller until the child's exec or end, and run RunChild in it. Every signal is
// blocked. -1 and errno when no child was made.
pid_t VforkChild(const ChildPlan& plan);

// clone3(2) with CLONE_INTO_CGROUP (Linux 5.7): the child is born in the cgroup. Joining it later
// by writing to cgroup.procs is slower by far: the first write after a pause waits for an RCU grace
// period, about 10 ms. ENOSYS where we have no code for the machine.
pid_t CloneChildInto(const UniqueFd& cgroup, const ChildPlan& plan);

}  // namespace ddprun
