// The part of the OpenAPI document about logins (docs/api/access.md), which are no routes of the
// API.
#include <array>

#include "api/documentation/openapi_words.h"

namespace ceems::api {
namespace {

constexpr std::array kOperations = {
    LoginOperation{"/login", "get", R"({
      "operationId": "get_login", "tags": ["login"], "security": [],
      "summary": "The page to log in, for browsers.",
      "parameters": [{"$ref": "#/components/parameters/Next"}],
      "responses": {
        "200": {"description": "A page without script.",
                "headers": {"Set-Cookie": {"$ref": "#/components/headers/Set-Cookie"}},
                "content": {"text/html": {"schema": {"type": "string"}}}},
        "404": {"$ref": "#/components/responses/NoLogin"},
        "429": {"$ref": "#/components/responses/TooManyRequests"}}})"},
    LoginOperation{"/login", "post", R"({
      "operationId": "log_in", "tags": ["login"], "security": [],
      "summary": "Logs in by password, where `login.local` of `whoami` is true.",
      "requestBody": {"required": true, "content": {"application/x-www-form-urlencoded": {
        "schema": {"type": "object", "required": ["user", "password", "token"], "properties": {
          "user": {"type": "string"}, "password": {"type": "string"},
          "token": {"type": "string", "description": "`login.token` of `whoami`."},
          "next": {"type": "string", "description": "Path on this server to go on to."}}}}}},
      "responses": {
        "200": {"$ref": "#/components/responses/Done"},
        "303": {"$ref": "#/components/responses/GoOn"},
        "400": {"$ref": "#/components/responses/NoForm"},
        "401": {"$ref": "#/components/responses/WrongPassword"},
        "403": {"$ref": "#/components/responses/OtherForm"},
        "404": {"$ref": "#/components/responses/NoLogin"},
        "429": {"$ref": "#/components/responses/TooManyAttempts"},
        "503": {"$ref": "#/components/responses/Busy"}}})"},
    LoginOperation{"/login/oidc", "get", R"({
      "operationId": "begin_oidc", "tags": ["login"], "security": [],
      "summary": "Goes to the provider, where `login.oidc` of `whoami` names one.",
      "parameters": [{"$ref": "#/components/parameters/Next"}],
      "responses": {
        "303": {"$ref": "#/components/responses/GoOn"},
        "404": {"$ref": "#/components/responses/NoLogin"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "503": {"$ref": "#/components/responses/Busy"}}})"},
    LoginOperation{"/login/callback", "get", R"({
      "operationId": "end_oidc", "tags": ["login"], "security": [],
      "summary": "Where the provider sends browsers back to.",
      "parameters": [
        {"name": "state", "in": "query", "required": true, "schema": {"type": "string"}},
        {"name": "code", "in": "query", "schema": {"type": "string"}},
        {"name": "error", "in": "query", "schema": {"type": "string"}}],
      "responses": {
        "303": {"$ref": "#/components/responses/GoOn"},
        "403": {"$ref": "#/components/responses/LoginRefused"},
        "404": {"$ref": "#/components/responses/NoLogin"},
        "429": {"$ref": "#/components/responses/TooManyRequests"},
        "503": {"$ref": "#/components/responses/Busy"}}})"},
    LoginOperation{"/logout", "post", R"({
      "operationId": "log_out", "tags": ["login"], "security": [],
      "summary": "Ends the session.",
      "requestBody": {"required": true, "content": {"application/x-www-form-urlencoded": {
        "schema": {"type": "object", "required": ["token"], "properties": {
          "token": {"type": "string", "description": "`login.token` of `whoami`."}}}}}},
      "responses": {
        "200": {"$ref": "#/components/responses/Done"},
        "303": {"$ref": "#/components/responses/GoOn"},
        "400": {"$ref": "#/components/responses/NoForm"},
        "403": {"$ref": "#/components/responses/OtherForm"},
        "404": {"$ref": "#/components/responses/NoLogin"},
        "429": {"$ref": "#/components/responses/TooManyRequests"}}})"},
};

constexpr std::string_view kNext = R"({
      "name": "next", "in": "query", "schema": {"type": "string"}, "example": "/ui/",
      "description": "Path on this server to go on to; anything else leads to its start."})";

constexpr std::string_view kDone = R"({
      "description": "Done, where the request has `Accept: application/json`.",
      "headers": {"Set-Cookie": {"$ref": "#/components/headers/Set-Cookie"}},
      "content": {"application/json": {
        "schema": {"type": "object", "required": ["status", "data"], "properties": {
          "status": {"const": "success"}, "data": {"type": "null"}}},
        "example": {"status": "success", "data": null}}}})";
constexpr std::string_view kGoOn = R"({
      "description": "Where to go on.",
      "headers": {"Location": {"$ref": "#/components/headers/Location"},
                  "Set-Cookie": {"$ref": "#/components/headers/Set-Cookie"}}})";
constexpr std::array kResponses = {
    LoginResponse{"Done", "", kDone},
    LoginResponse{"GoOn", "", kGoOn},
    LoginResponse{"NoForm", "The request carries no form."},
    LoginResponse{"WrongPassword", "User name or password is wrong."},
    LoginResponse{"OtherForm", "The form is not of this server, or too old."},
    LoginResponse{"TooManyAttempts", "Too many attempts, or requests; see `Retry-After`."},
    LoginResponse{"Busy", "Too many log in at once, or the provider does not answer."},
    LoginResponse{"LoginRefused", "Refused by the provider, or not begun in this browser."},
    LoginResponse{"NoLogin", "Nobody logs in to this server that way."},
};

}  // namespace

std::span<const LoginOperation> login_operations() {
  return kOperations;
}

std::span<const LoginResponse> login_responses() {
  return kResponses;
}

std::string_view login_next_parameter() {
  return kNext;
}

}  // namespace ceems::api
