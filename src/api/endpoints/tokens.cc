// Personal API tokens.
#include "access/tokens.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/endpoints/all.h"
#include "base/json.h"
#include "model/protocol.h"
#include "store/tokens.h"

namespace ceems::api {
namespace {

constexpr std::size_t kMaxTokenBody = 4096;

struct TokenWish {
  std::string name = {};
  access::TokenScope scope = access::TokenScope::kNothing;
  std::optional<std::chrono::days> lifetime = {};
};

std::string_view text_of(const boost::json::value& value) {
  const boost::json::string* const text = value.if_string();
  return text == nullptr ? std::string_view() : std::string_view(text->data(), text->size());
}

/// What the body of a request asks for. kInvalidArgument with a text for clients.
Result<TokenWish> parse_wish(const std::string& body) {
  std::error_code error;
  const boost::json::value document =
      body.size() > kMaxTokenBody ? nullptr : boost::json::parse(body, error);
  const boost::json::object* const object = error ? nullptr : document.if_object();
  if (object == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "expected a JSON object of at most {} bytes",
                kMaxTokenBody);
  }
  TokenWish wish;
  for (const auto& [key, value] : *object) {
    if (key == "name") {
      wish.name = text_of(value);
    } else if (key == "scope") {
      wish.scope = access::parse_token_scope(text_of(value)).value_or(access::TokenScope::kNothing);
    } else if (key == "days") {
      constexpr std::int64_t kMaxDays = 100'000;
      const std::int64_t* const days = value.if_int64();
      wish.lifetime = std::chrono::days(days != nullptr && *days < kMaxDays ? *days : 0);
    } else {
      return fail(ErrorCode::kInvalidArgument, "unknown member, expected one of name, scope, days");
    }
  }
  return wish;
}

void append_token(JsonWriter& json, const store::Token& token) {
  json.begin_object().member("id", token.id).member("user", token.username);
  json.member("name", token.name).member("scope", token.scope);
  json.member("created_ts", token.created_ms).member("expires_ts", token.expires_ms);
  json.key("used_ts");
  if (token.used_ms > 0) {
    json.value(token.used_ms);
  } else {
    json.value(nullptr);
  }
}

/// Whether the caller may have tokens here. Answers otherwise.
bool offers_tokens(const Services& services, Call& call) {
  if (services.tokens == nullptr) {
    answer_error(*call.response, ApiErrorType::kNotFound, "personal tokens are off at this site");
    return false;
  }
  if (access::have_tokens(call.identity) != access::Decision::kAllow) {
    answer_error(*call.response, ApiErrorType::kForbidden, "the service account has no tokens");
    return false;
  }
  if (call.admin_route && access::see_tokens(call.identity) != access::Decision::kAllow) {
    answer_error(*call.response, ApiErrorType::kForbidden, "for administrators only");
    return false;
  }
  // A page of another site must not make a browser change anything, also where a proxy adds the
  // name of the user.
  if (call.request->method != "GET" && !services.tokens->is_same_site(*call.request)) {
    answer_error(*call.response, ApiErrorType::kForbidden, "not sent from a page of this server");
    return false;
  }
  return true;
}

/// Whose tokens the endpoint is about: of everybody for admins.
std::optional<std::string> owner_of(const Call& call) {
  return call.admin_route ? std::nullopt : std::optional(call.identity.user);
}

void list_tokens(const Services& services, Call& call) {
  if (!offers_tokens(services, call)) {
    return;
  }
  QueryTimer timer(*services.metrics, Query::kIdentity);
  const auto tokens = timer.run([&] { return services.reader->tokens_of(owner_of(call)); });
  if (!tokens) {
    answer_failure(*call.response, tokens.error());
    return;
  }
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const store::Token& token : *tokens) {
    append_token(json, token);
    json.end_object();
  }
  json.end_array();
  answer_data(*call.response, data);
}

void make_token(const Services& services, Call& call) {
  if (!offers_tokens(services, call)) {
    return;
  }
  if (!has_json_body(call)) {
    return;
  }
  const auto wish = parse_wish(call.request->body);
  if (!wish) {
    answer_bad_request(call, wish.error());
    return;
  }
  const auto made =
      services.tokens->make(call.identity.user, wish->name, wish->scope, wish->lifetime);
  if (!made) {
    if (made.error().code == ErrorCode::kInvalidArgument) {
      answer_bad_request(call, made.error());
    } else {
      answer_failure(*call.response, made.error());
    }
    return;
  }
  const std::optional<login::Tokens::Made>& fresh = made.value();
  if (!fresh) {
    answer_error(
        *call.response, ApiErrorType::kConflict,
        fmt::format("you have {} tokens already: revoke one first", login::Tokens::kMaxPerUser));
    return;
  }
  call.changed = "token_made";
  call.changed_token = fresh->token.id;
  call.changed_owner = call.identity.user;
  std::string data;
  JsonWriter json(data);
  append_token(json, fresh->token);
  json.member("token", fresh->secret).end_object();
  answer_data(*call.response, data);
}

void revoke_token(const Services& services, Call& call) {
  if (!offers_tokens(services, call)) {
    return;
  }
  const std::string id(call.params.text(Param::kTokenId));
  if (id.empty()) {
    answer_error(*call.response, ApiErrorType::kBadData,
                 "query parameter 'id': expected the ID of a token");
    return;
  }
  const auto revoked = services.tokens->revoke(id, owner_of(call));
  if (!revoked) {
    answer_failure(*call.response, revoked.error());
    return;
  }
  const std::optional<std::string>& owner = revoked.value();
  if (!owner) {
    answer_error(*call.response, ApiErrorType::kNotFound, "no token has this ID");
    return;
  }
  call.changed = "token_revoked";
  call.changed_token = id;
  call.changed_owner = *owner;
  answer_data(*call.response, "null");
}

constexpr std::string_view kTokenMembers = R"json(
          "id": {"type": "string", "description": "Names the token; not a secret."},
          "user": {"type": "string", "description": "Whose it is."},
          "name": {"type": "string", "description": "In the words of its owner."},
          "scope": {"enum": ["read-own", "read-led"], "description": "`read-own`: what the owner sees as a user. `read-led`: also the projects that the owner leads."},
          "created_ts": {"type": "integer", "description": "In milliseconds since 1970."},
          "expires_ts": {"type": "integer", "description": "In milliseconds since 1970."},
          "used_ts": {"type": ["integer", "null"], "description": "The last use, to the hour, in milliseconds since 1970; null: never."})json";

constexpr std::string_view kTokenExample =
    R"("id":"pRX3vZy0q1Tk","user":"ada","name":"laptop","scope":"read-own",)"
    R"("created_ts":1767225600000,"expires_ts":1775001600000,"used_ts":null)";

}  // namespace

Endpoints tokens_endpoints() {
  static const std::string kToken = fmt::format(
      R"json("PersonalToken": {{
        "type": "object",
        "required": ["id", "user", "name", "scope", "created_ts", "expires_ts", "used_ts"],
        "additionalProperties": false,
        "properties": {{{}
        }}
      }})json",
      kTokenMembers);
  static const std::string kNewToken = fmt::format(
      R"json("NewPersonalToken": {{
        "type": "object",
        "required": ["id", "user", "name", "scope", "created_ts", "expires_ts", "used_ts", "token"],
        "additionalProperties": false,
        "properties": {{{},
          "token": {{"type": "string", "description": "The secret, which is not shown again."}}
        }}
      }})json",
      kTokenMembers);
  static const std::string kExample = fmt::format("{{{}}}", kTokenExample);
  static const std::string kNewExample =
      fmt::format(R"({{{},"token":"ceems_pat_{:A>43}"}})", kTokenExample, "");
  const Endpoint list{.path = "tokens",
                      .caller = Caller::kUser,
                      .summary = "The personal API tokens of the caller, without their secrets.",
                      .handler = list_tokens,
                      .data = {.name = "PersonalToken", .definitions = kToken, .example = kExample},
                      .tagged = false,
                      .audited = false,
                      .by_token = ByToken::kNever,
                      .refusals = {ApiErrorType::kForbidden, ApiErrorType::kNotFound}};
  Endpoint make = list;
  make.summary = "Makes a personal API token. Its secret is shown once.";
  make.handler = make_token;
  make.data = {
      .name = "NewPersonalToken", .one = true, .definitions = kNewToken, .example = kNewExample};
  make.body = {.name = "TokenRequest",
               .definitions = R"json("TokenRequest": {
        "type": "object",
        "required": ["name", "scope"],
        "additionalProperties": false,
        "properties": {
          "name": {"type": "string", "description": "For what it is, 1 to 100 bytes."},
          "scope": {"enum": ["read-own", "read-led"]},
          "days": {"type": "integer", "description": "After how many days it expires, 1 to 365 or what the site allows. Default: 90."}
        }
      })json",
               .example = R"({"name":"laptop","scope":"read-own","days":90})"};
  make.refusals.insert(make.refusals.end(), {ApiErrorType::kBadData, ApiErrorType::kConflict});
  Endpoint revoke = list;
  revoke.summary = "Revokes a personal API token of the caller at once.";
  revoke.handler = revoke_token;
  revoke.data = {};
  revoke.params = {Param::kTokenId};
  revoke.verb = "DELETE";
  revoke.refusals.push_back(ApiErrorType::kBadData);
  return {list, make, revoke,
          list.for_admins("tokens/admin", "The personal API tokens of everybody."),
          revoke.for_admins("tokens/admin", "Revokes a personal API token of anybody at once.")};
}

}  // namespace ceems::api
