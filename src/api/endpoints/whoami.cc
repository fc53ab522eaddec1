// The identity of the caller.
#include <string>

#include "api/endpoints/all.h"
#include "base/json.h"

namespace ceems::api {
namespace {

void get_whoami(const Services& services, Call& call) {
  if (services.sign_in != nullptr && !call.by_token) {
    answer_data(*call.response, "[" + services.sign_in->whoami(*call.request, call.identity) + "]");
    return;
  }
  std::string data;
  JsonWriter json(data);
  json.begin_array().begin_object().member("user", call.identity.user);
  json.member("admin", call.identity.role == access::Role::kAdmin);
  json.member("role", access::role_name(call.identity.role));
  if (call.by_token) {
    json.member("via", "token").key("led").begin_array();
    for (const store::ClusterProject& led : call.identity.led) {
      json.begin_object().member("cluster_id", led.cluster_id);
      json.member("project", led.project).end_object();
    }
    json.end_array();
  }
  json.end_object().end_array();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints whoami_endpoints() {
  return {
      {.path = "whoami",
       .caller = Caller::kUser,
       .summary = "The identity and the role of the caller.",
       .handler = get_whoami,
       .data =
           {.name = "Identity",
            .definitions = R"json("Identity": {
        "type": "object",
        "required": ["user", "admin", "role"],
        "additionalProperties": false,
        "properties": {
          "user": {"type": "string", "description": "Name of the caller."},
          "admin": {"type": "boolean", "description": "Whether the caller is an administrator."},
          "role": {"enum": ["user", "project_lead", "support", "admin"], "description": "Role of the caller."},
          "via": {"enum": ["header", "service_account", "local", "oidc", "token"], "description": "How the caller was identified."},
          "led": {
            "type": "array",
            "description": "Projects that the caller leads.",
            "items": {
              "type": "object",
              "required": ["cluster_id", "project"],
              "additionalProperties": false,
              "properties": {"cluster_id": {"type": "string"}, "project": {"type": "string"}}
            }
          },
          "login": {"$ref": "#/components/schemas/Login"}
        }
      })json",
            .example =
                R"({"user":"ada","admin":false,"role":"project_lead","via":"local",)"
                R"("led":[{"cluster_id":"hpc-a","project":"fluids"}],)"
                R"("login":{"header":null,"local":true,"oidc":null,"token":"mYb3h4T6u9KcEa"}})"},
       .params = {Param::kAnonymous},
       .tagged = false,
       .login = true}};
}

}  // namespace ceems::api
