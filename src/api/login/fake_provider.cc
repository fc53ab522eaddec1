#include "api/login/fake_provider.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "access/session.h"
#include "access/test_key.h"
#include "crypto/base64.h"
#include "crypto/digest.h"

namespace ceems::api::login {
namespace {

using access::Key;

std::string number(const Key& key, const char* name) {
  return crypto::base64url_encode(access::key_number(key, name));
}

std::string sign(const Key& key, const std::string& text) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  EXPECT_EQ(EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()), 1);
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t size = 0;
  EXPECT_EQ(EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size()), 1);
  std::string made(size, '\0');
  EXPECT_EQ(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(made.data()), &size,
                           bytes, text.size()),
            1);
  return made;
}

std::string field(const std::string& query, std::string_view name) {
  for (const auto& [key, value] : net::parse_query(query)) {
    if (key == name) {
      return value;
    }
  }
  return {};
}

}  // namespace

struct FakeProvider::Secrets {
  const Key* key = &pair().first;
  const Key* next = &pair().second;
  int generation = 0;

 private:
  /// The keys are generated once for all tests, because that takes a while.
  static const std::pair<Key, Key>& pair() {
    static const std::pair<Key, Key> made{Key(EVP_RSA_gen(2048)), Key(EVP_RSA_gen(2048))};
    return made;
  }
};

FakeProvider::FakeProvider(std::int64_t now) : secrets_(std::make_unique<Secrets>()) {
  net::ServerOptions options;
  options.listen_addresses = {"127.0.0.1:0"};
  auto server = net::Server::create(
      std::move(options),
      [this](const net::Request& request, net::Response& response) { answer(request, response); });
  EXPECT_TRUE(server);
  server_ = std::move(*server);
  issuer_ = "http://" + server_->addresses().front();
  claims_ = {{"iss", "\"" + issuer_ + "\""}, {"aud", R"("ceems")"},
             {"sub", R"("0815")"},           {"preferred_username", R"("ada")"},
             {"iat", std::to_string(now)},   {"exp", std::to_string(now + 300)}};
  server_->start();
}

FakeProvider::~FakeProvider() {
  server_->stop();
}

std::string FakeProvider::issuer() const {
  return issuer_;
}

std::string FakeProvider::code_for(const std::string& authorization_url) {
  const std::string query = authorization_url.substr(authorization_url.find('?') + 1);
  EXPECT_EQ(field(query, "response_type"), "code");
  EXPECT_EQ(field(query, "client_id"), "ceems");
  EXPECT_EQ(field(query, "code_challenge_method"), "S256");
  const std::string code = crypto::base64url_encode(crypto::random_bytes(12));
  const MutexLock lock(mutex_);
  codes_[code] = {.nonce = field(query, "nonce"),
                  .challenge = field(query, "code_challenge"),
                  .redirect_uri = field(query, "redirect_uri")};
  return code;
}

void FakeProvider::set_claim(const std::string& name, const std::string& json) {
  const MutexLock lock(mutex_);
  claims_[name] = json;
}

void FakeProvider::forget_claim(const std::string& name) {
  const MutexLock lock(mutex_);
  claims_.erase(name);
}

void FakeProvider::rotate() {
  const MutexLock lock(mutex_);
  std::swap(secrets_->key, secrets_->next);
  ++secrets_->generation;
}

void FakeProvider::break_path(const std::string& path, int status) {
  const MutexLock lock(mutex_);
  broken_[path] = status;
}

void FakeProvider::set_header(const std::string& json) {
  const MutexLock lock(mutex_);
  header_ = json;
}

void FakeProvider::sign_wrongly(bool wrongly) {
  const MutexLock lock(mutex_);
  wrong_key_ = wrongly;
}

int FakeProvider::asked(const std::string& path) const {
  const MutexLock lock(mutex_);
  const auto found = asked_.find(path);
  return found == asked_.end() ? 0 : found->second;
}

std::string FakeProvider::last_authorization() const {
  const MutexLock lock(mutex_);
  return authorization_;
}

std::string FakeProvider::id_token(const std::string& nonce) {
  std::string claims = "{";
  for (const auto& [name, json] : claims_) {
    if (!json.empty()) {
      claims += fmt::format("\"{}\":{},", name, json);
    }
  }
  if (!claims_.contains("nonce")) {
    claims += fmt::format("\"nonce\":\"{}\",", nonce);
  }
  claims.back() = '}';
  const std::string header =
      header_.empty() ? fmt::format(R"({{"alg":"RS256","kid":"k{}"}})", secrets_->generation)
                      : header_;
  const std::string text =
      crypto::base64url_encode(header) + "." + crypto::base64url_encode(claims);
  return text + "." +
         crypto::base64url_encode(sign(wrong_key_ ? *secrets_->next : *secrets_->key, text));
}

void FakeProvider::answer_token(const net::Request& request, net::Response& response) {
  const std::string* sent = net::find_header(request.headers, "Authorization");
  authorization_ = sent == nullptr ? "" : *sent;
  const auto found = codes_.find(field(request.body, "code"));
  const bool good =
      request.method == "POST" && found != codes_.end() &&
      field(request.body, "grant_type") == "authorization_code" &&
      field(request.body, "redirect_uri") == found->second.redirect_uri &&
      access::code_challenge_of(field(request.body, "code_verifier")) == found->second.challenge;
  if (!good) {
    response.status = 400;
    response.body = R"({"error":"invalid_grant"})";
    return;
  }
  response.body = R"({"access_token":"x","token_type":"Bearer","id_token":")" +
                  id_token(found->second.nonce) + "\"}";
  codes_.erase(found);
}

void FakeProvider::answer(const net::Request& request, net::Response& response) {
  const MutexLock lock(mutex_);
  ++asked_[request.path];
  response.set_header("Content-Type", "application/json");
  if (const auto broken = broken_.find(request.path);
      broken != broken_.end() && broken->second > 0) {
    response.status = broken->second;
    return;
  }
  if (request.path == "/.well-known/openid-configuration") {
    response.body =
        fmt::format(R"({{"issuer":"{0}","authorization_endpoint":"{0}/authorize?tenant=a",)"
                    R"("token_endpoint":"{0}/token","jwks_uri":"{0}/keys"}})",
                    issuer_);
  } else if (request.path == "/keys") {
    response.body = fmt::format(
        R"({{"keys":[{{"kty":"RSA","use":"sig","alg":"RS256","kid":"k{}","n":"{}","e":"{}"}}]}})",
        secrets_->generation, number(*secrets_->key, OSSL_PKEY_PARAM_RSA_N),
        number(*secrets_->key, OSSL_PKEY_PARAM_RSA_E));
  } else if (request.path == "/token") {
    answer_token(request, response);
  } else {
    response.status = 404;
  }
}

}  // namespace ceems::api::login
