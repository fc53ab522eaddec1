#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/connection.h"
#include "os/command.h"

namespace ceems::ingest {

/// Returns a function that connects to the API server named by `kubeconfig_file` or, if that is
/// empty, to that of the cluster we run in (KUBERNETES_SERVICE_HOST and _PORT, the service
/// account's files). The file and the files it names are read for each connection, so that renewed
/// credentials take effect. Credentials of an exec plug-in (client.authentication.k8s.io) are
/// cached until they expire. The plug-in runs with the environment of this process and is stopped
/// after 30 s.
///
/// The function's errors say what is wrong with the file; kInvalidArgument if there is no file and
/// we do not run in a cluster. `clock` and `runner` must outlive the function, which is
/// thread-safe.
Result<kube::Connect> k8s_connect(const std::string& kubeconfig_file,
                                  os::CommandRunner& runner,
                                  const Clock& clock);

}  // namespace ceems::ingest
