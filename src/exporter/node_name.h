#pragma once

#include <string>

namespace ceems::exporter {

/// Value of the label `hostname`: empty if `emptied`, otherwise $NODE_NAME if it is set (Kubernetes
/// passes the node's name to a pod in it), otherwise the kernel's node name unchanged.
std::string node_name(bool emptied);

}  // namespace ceems::exporter
