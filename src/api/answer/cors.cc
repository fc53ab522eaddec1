#include "api/answer/cors.h"

#include <utility>

#include <re2/re2.h>

namespace ceems::api {

struct Cors::Impl {
  Impl(std::string_view pattern, const RE2::Options& options)
      : origin(re2::StringPiece(pattern.data(), pattern.size()), options) {}
  RE2 origin;
  std::string allowed_headers;
};

Cors::Cors(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cors::Cors(Cors&&) noexcept = default;
Cors& Cors::operator=(Cors&&) noexcept = default;
Cors::~Cors() = default;

Result<Cors> Cors::create(std::string_view origin, const std::vector<std::string>& user_headers) {
  RE2::Options options;
  options.set_dot_nl(true);
  options.set_log_errors(false);
  auto impl = std::make_unique<Impl>(origin, options);
  if (!impl->origin.ok()) {
    return fail(ErrorCode::kInvalidArgument, "{}", impl->origin.error());
  }
  impl->allowed_headers = "Accept, Authorization, Content-Type, Origin";
  for (const std::string& header : user_headers) {
    impl->allowed_headers += ", " + header;
  }
  return Cors(std::move(impl));
}

bool Cors::allows(std::string_view origin) const {
  return RE2::FullMatch(re2::StringPiece(origin.data(), origin.size()), impl_->origin);
}

void Cors::add_headers(const net::Request& request, net::Response& response) const {
  const std::string* origin = net::find_header(request.headers, "Origin");
  if (origin == nullptr || origin->empty()) {
    return;
  }
  response.set_header("Access-Control-Allow-Headers", impl_->allowed_headers);
  response.set_header("Access-Control-Allow-Methods", "GET");
  response.set_header("Access-Control-Expose-Headers", "Date");
  response.set_header("Vary", "Origin");
  if (allows(*origin)) {
    response.set_header("Access-Control-Allow-Origin", *origin);
  }
}

}  // namespace ceems::api
