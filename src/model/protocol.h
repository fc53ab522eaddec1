#pragma once

#include <string_view>

// Names that Grafana, ceems_lb and ceems_api_server agree on.
namespace ceems::model {

/// The user as which ceems_lb asks the API server who owns a unit. It is always an administrator
/// there, and logging in with this name is impossible.
inline constexpr std::string_view kServiceAccount = "ceems-int-svc";

/// The request header with the secret that proves that a request is one of the service account, or
/// one that it makes for the user in kUserHeader.
inline constexpr std::string_view kServiceTokenHeader = "X-Ceems-Service-Token";

/// The request header with the secret of the proxies that may name users.
inline constexpr std::string_view kProxyTokenHeader = "X-Ceems-Proxy-Token";
/// The request header with a personal API token, for requests whose Authorization has the password
/// of the web configuration.
inline constexpr std::string_view kTokenHeader = "X-Ceems-Token";

/// The request header with the name of the user. Grafana sets it (`send_user_header`).
inline constexpr std::string_view kUserHeader = "X-Grafana-User";
/// The request header with the id of the cluster that a request to ceems_lb is for.
inline constexpr std::string_view kClusterHeader = "X-Ceems-Cluster-Id";
/// The request header in which ceems_lb passes the user's name to backends.
inline constexpr std::string_view kLoggedUserHeader = "X-Ceems-Logged-User";

/// The response header of units/verify. The value kVerifiedEach means that the server checked every
/// unit separately. The server of CEEMS 0.10.2 only compares the number of rows with the number of
/// ids.
inline constexpr std::string_view kVerifiedHeader = "X-Ceems-Verified";
inline constexpr std::string_view kVerifiedEach = "each";

}  // namespace ceems::model
