#include "redfish_proxy/policy.h"

#include <utility>

#include <re2/re2.h>

namespace ceems::redfish_proxy {
namespace {

constexpr std::string_view kSessions = "^/redfish/v1/(SessionService/)?Sessions/?$";
constexpr std::string_view kSession = "^/redfish/v1/(SessionService/)?Sessions/[A-Za-z0-9_.-]+/?$";
constexpr std::int64_t kMaxProgramBytes = std::int64_t{1} << 20;

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

struct ResourcePolicy::Impl {
  std::vector<std::unique_ptr<RE2>> resources;
  RE2 sessions{piece(kSessions)};
  RE2 session{piece(kSession)};
};

ResourcePolicy::ResourcePolicy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ResourcePolicy::~ResourcePolicy() = default;

Result<std::shared_ptr<const ResourcePolicy>> ResourcePolicy::create(
    const std::vector<std::string>& resources) {
  auto impl = std::make_unique<Impl>();
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxProgramBytes);
  for (const std::string& text : resources.empty() ? default_resources() : resources) {
    auto expression = std::make_unique<RE2>(text, options);
    if (!expression->ok()) {
      return fail(ErrorCode::kInvalidArgument, "invalid regular expression '{}': {}", text,
                  expression->error());
    }
    impl->resources.push_back(std::move(expression));
  }
  return std::shared_ptr<const ResourcePolicy>(new ResourcePolicy(std::move(impl)));
}

ResourcePolicy::Verdict ResourcePolicy::check(std::string_view method,
                                              std::string_view path) const {
  const auto matches = [path](const RE2& expression) {
    return RE2::PartialMatch(piece(path), expression);
  };
  bool allowed = false;
  for (const auto& expression : impl_->resources) {
    allowed = allowed || matches(*expression);
  }
  if (!allowed) {
    return Verdict::kPathRefused;
  }
  const bool method_allowed = method == "GET" || method == "HEAD" ||
                              (method == "POST" && matches(impl_->sessions)) ||
                              (method == "DELETE" && matches(impl_->session));
  return method_allowed ? Verdict::kAllowed : Verdict::kMethodRefused;
}

std::vector<std::string> default_resources() {
  // The ids of some vendors contain dots, such as System.Embedded.1, and the links of others end
  // with a slash. Paths are clean, so an id is never "..".
  return {"^/redfish/v1/$",
          "^/redfish/v1/Sessions$",
          "^/redfish/v1/Sessions/[A-Za-z0-9_.-]*/?$",
          "^/redfish/v1/SessionService/Sessions$",
          "^/redfish/v1/SessionService/Sessions/[A-Za-z0-9_.-]*/?$",
          "^/redfish/v1/Chassis$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/Power/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/EnvironmentMetrics/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/PowerSubsystem/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/PowerSubsystem/PowerSupplies/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/PowerSubsystem/PowerSupplies/[A-Za-z0-9_.-]*/?$",
          "^/redfish/v1/Chassis/[\\w.-]*/PowerSubsystem/PowerSupplies/[\\w.-]*/Metrics/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/Sensors/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/Sensors/[A-Za-z0-9_.-]*/?$"};
}

}  // namespace ceems::redfish_proxy
