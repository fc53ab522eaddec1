#include "kube/connection.h"

#include <iterator>
#include <utility>

#include "base/strings.h"
#include "kube/objects.h"

namespace ceems::kube {

Result<net::ClientOptions> client_options(ApiAccess access, const ReadFile& read) {
  for (const auto& [value, file] : {std::pair{&access.ca, &access.ca_file},
                                    {&access.client_cert, &access.client_cert_file},
                                    {&access.client_key, &access.client_key_file},
                                    {&access.token, &access.token_file}}) {
    if (file->empty()) {
      continue;
    }
    CEEMS_TRY(content, read(*file));
    *value = std::move(content);
  }
  net::ClientOptions options;
  options.tls.ca = std::move(access.ca);
  options.tls.cert = std::move(access.client_cert);
  options.tls.key = std::move(access.client_key);
  options.tls.server_name = std::move(access.tls_server_name);
  options.tls.insecure_skip_verify = access.insecure_skip_verify;
  const std::string token(trim(access.token));
  if (!token.empty()) {
    options.authorization = net::ClientOptions::Authorization{.credentials = token};
  } else if (!access.username.empty()) {
    options.basic_auth = net::ClientOptions::BasicAuth{.username = std::move(access.username),
                                                       .password = std::move(access.password)};
  }
  options.proxy_url = std::move(access.proxy_url);
  options.proxy_from_environment = options.proxy_url.empty();
  options.follow_redirects = false;
  return options;
}

Error refusal(const net::ClientResponse& answer) {
  const std::string message = status_message(answer.body);
  return {.code = ErrorCode::kUnavailable,
          .message = fmt::format("HTTP status {}{}{}", answer.status, message.empty() ? "" : ": ",
                                 message)};
}

Result<std::string> get_json(net::Client& client, const std::string& url) {
  CEEMS_TRY(answer, client.get(url, {{"Accept", "application/json"}}));
  if (answer.status != 200) {
    return fail(refusal(answer));
  }
  return std::move(answer.body);
}

std::string percent_encode(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (is_word(c, "-._~")) {
      result += c;
    } else {
      fmt::format_to(std::back_inserter(result), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

}  // namespace ceems::kube
