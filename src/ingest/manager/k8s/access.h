#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/connection.h"
#include "os/command.h"

namespace ceems::ingest {

/// How to talk to the API server that `kubeconfig_file` names, or, where that is empty, to the one
/// of the cluster we run in (KUBERNETES_SERVICE_HOST and _PORT, the service account's files). The
/// file, and those it names, are read for each connection, so that renewed credentials are taken.
/// Credentials of an exec plug-in (client.authentication.k8s.io) are kept until they expire; it is
/// run with the environment of this process, and ended after 30 s.
///
/// Errors, when called: what is wrong with the file, kInvalidArgument without file outside of a
/// cluster. `clock` and `runner` outlive what is given; calls come from several threads.
Result<kube::Connect> k8s_connect(const std::string& kubeconfig_file,
                                  os::CommandRunner& runner,
                                  const Clock& clock);

}  // namespace ceems::ingest
