#pragma once

#include <string_view>

// Names that programs agree on: Grafana, ceems_lb and ceems_api_server.
namespace ceems::model {

/// The user as whom ceems_lb asks the API server who owns a unit. It is always an administrator
/// there, and nobody can log in with this name.
inline constexpr std::string_view kServiceAccount = "ceems-int-svc";

/// Request header with the name of the user. Grafana sets it (`send_user_header`).
inline constexpr std::string_view kUserHeader = "X-Grafana-User";
/// Request header with the id of the cluster that a request to ceems_lb is for.
inline constexpr std::string_view kClusterHeader = "X-Ceems-Cluster-Id";
/// Request header by which ceems_lb names the user to backends.
inline constexpr std::string_view kLoggedUserHeader = "X-Ceems-Logged-User";

/// Response header of units/verify with the value kVerifiedEach: the server checked every unit on
/// its own. The server of CEEMS 0.10.2 compares only the number of rows with the number of ids.
inline constexpr std::string_view kVerifiedHeader = "X-Ceems-Verified";
inline constexpr std::string_view kVerifiedEach = "each";

}  // namespace ceems::model
