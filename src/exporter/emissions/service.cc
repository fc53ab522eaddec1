#include "exporter/emissions/service.h"

#include <utility>

namespace ceems::exporter::emissions {
namespace {

constexpr std::chrono::seconds kTimeout{30};
constexpr std::size_t kMaxResponse = std::size_t{4} << 20U;

}  // namespace

Result<std::shared_ptr<Service>> Service::create(const ProviderContext& context,
                                                 const char* base_variable,
                                                 std::string base_url) {
  if (auto other = context.environment(base_variable); other && !other->empty()) {
    base_url = *std::move(other);
  }
  while (base_url.ends_with('/')) {
    base_url.pop_back();
  }
  net::ClientOptions options;
  options.proxy_from_environment = true;
  options.timeout = kTimeout;
  options.max_response_bytes = kMaxResponse;
  options.user_agent = "ceems_exporter";
  CEEMS_TRY(client, net::Client::create(std::move(options)));
  return std::shared_ptr<Service>(new Service(std::move(base_url), std::move(client)));
}

Result<std::string> Service::get(const std::string& path, const net::Headers& headers) {
  CEEMS_TRY(answer, client_->get(base_url_ + path, headers));
  if (answer.status != 200) {
    const bool refused = answer.status == 401 || answer.status == 403;
    return fail(refused ? ErrorCode::kPermissionDenied : ErrorCode::kUnavailable,
                "GET {}: status {}", path.substr(0, path.find('?')), answer.status);
  }
  return std::move(answer.body);
}

}  // namespace ceems::exporter::emissions
