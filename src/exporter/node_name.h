#pragma once

#include <string>

namespace ceems::exporter {

/// Value of the label `hostname`: empty when `emptied`, else $NODE_NAME where it is set (Kubernetes
/// gives the node's name to a pod that way), else the kernel's node name as it is.
std::string node_name(bool emptied);

}  // namespace ceems::exporter
