#pragma once

#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace ceems::kube {

/// The UID by which the kubelet knows a static pod, in cgroups for example, from the `metadata` of
/// its mirror in the API server, where it has another one; empty for all other pods. The kubelet
/// writes it into the annotations kubernetes.io/config.hash and config.mirror, as 32 digits that
/// cannot be the UID of another pod.
///
/// Users can write annotations and owner references, so both must fit: the only owner of a mirror
/// is its node, and its name ends with that of the node. `node` is that of the pod; empty if it is
/// not known. Several objects may still claim the same static pod: of these the one that the API
/// server created first is its mirror.
std::string static_pod_uid(const boost::json::object& metadata, std::string_view node);

}  // namespace ceems::kube
