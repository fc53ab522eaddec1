#include "kube/kubeconfig.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string config(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
         "contexts:\n- name: other\n  context: {cluster: x, user: y}\n"
         "- name: here\n  context: {cluster: c1, user: u1, namespace: n}\n"
         "clusters:\n- name: c1\n  cluster: " +
         cluster + "\nusers:\n- name: u1\n  user: " + user + "\n";
}

std::string error_of(const std::string& text) {
  const auto access = parse_kubeconfig(text, "/etc/k/config");
  return access ? "" : access.error().message;
}

TEST(Kubeconfig, YieldsServerAndCredentialsOfTheCurrentContext) {
  const auto access = parse_kubeconfig(
      config("{server: 'https://h:6443/x/', certificate-authority: pki/ca.crt, "
             "tls-server-name: api, insecure-skip-tls-verify: true, proxy-url: 'http://p:1'}",
             "{token: t0ken, tokenFile: /run/token, username: me, password: secret}"),
      "/etc/k/config");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://h:6443/x");
  EXPECT_EQ(access->ca_file, "/etc/k/pki/ca.crt");
  EXPECT_EQ(access->tls_server_name, "api");
  EXPECT_TRUE(access->insecure_skip_verify);
  EXPECT_EQ(access->proxy_url, "http://p:1");
  EXPECT_EQ(access->token, "t0ken");
  EXPECT_EQ(access->token_file, "/run/token");
  EXPECT_EQ(access->username, "me");
  EXPECT_EQ(access->password, "secret");
  EXPECT_TRUE(access->has_files());
}

TEST(Kubeconfig, PrefersDataToFiles) {
  const auto access = parse_kubeconfig(
      config("{server: 'https://h', certificate-authority: ca, certificate-authority-data: Q0E=}",
             "{client-certificate-data: Q0VSVA==, client-key-data: S0VZ, client-key: f}"),
      "config");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->ca, "CA");
  EXPECT_EQ(access->ca_file, "");
  EXPECT_EQ(access->client_cert, "CERT");
  EXPECT_EQ(access->client_key, "KEY");
  EXPECT_FALSE(access->has_files());
}

TEST(Kubeconfig, CompletesServersWithoutScheme) {
  EXPECT_EQ(parse_kubeconfig(config("{server: 'h:8080'}", "{}"), "f")->server, "http://h:8080");
  EXPECT_EQ(parse_kubeconfig(config("{server: 'h', certificate-authority: c}", "{}"), "f")->server,
            "https://h");
}

TEST(Kubeconfig, MayHaveNoUser) {
  const auto access = parse_kubeconfig(
      R"({"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "b"}}],
          "clusters": [{"name": "b", "cluster": {"server": "http://h"}}]})",
      "f");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "http://h");
}

TEST(Kubeconfig, ReportsWhatIsWrong) {
  EXPECT_THAT(error_of(""), HasSubstr("/etc/k/config"));
  EXPECT_THAT(error_of("- 1\n"), HasSubstr("expected a kubeconfig"));
  EXPECT_THAT(error_of("a: [\n"), HasSubstr("/etc/k/config"));
  EXPECT_THAT(error_of("kind: Config\n"), HasSubstr("current-context"));
  EXPECT_THAT(error_of("current-context: a\n"), HasSubstr("'a' not found in contexts"));
  EXPECT_THAT(error_of("current-context: a\ncontexts: nonsense\n"), HasSubstr("'a' not found"));
  EXPECT_THAT(error_of("current-context: a\ncontexts: [{name: a}]\n"), HasSubstr("in clusters"));
  EXPECT_THAT(error_of(config("5", "{}")), HasSubstr("expected a mapping 'cluster'"));
  EXPECT_THAT(error_of(config("{}", "{}")), HasSubstr("URL of the API server"));
  EXPECT_THAT(error_of(config("{server: [1]}", "{}")), HasSubstr("server"));
  EXPECT_THAT(error_of(config("{server: h, insecure-skip-tls-verify: perhaps}", "{}")),
              HasSubstr("insecure-skip-tls-verify"));
  EXPECT_THAT(error_of(config("{server: h}", "{client-key-data: S0VZ}")),
              HasSubstr("got only one of them"));
  EXPECT_THAT(error_of(config("{server: h}", "{auth-provider: {name: gcp}}")),
              HasSubstr("auth-provider: not supported"));
  EXPECT_THAT(error_of(config("{server: h}", "{exec: {args: [a]}}")), HasSubstr("'command'"));
  EXPECT_THAT(error_of(config("{server: h}", "{exec: {command: a, args: b}}")), HasSubstr("args"));
  EXPECT_THAT(error_of(config("{server: h}", "{exec: {command: a, env: [{name: b}]}}")),
              HasSubstr("'name' and 'value'"));
  EXPECT_THAT(error_of(std::string(2U << 20U, '#')), HasSubstr("longer than"));
}

TEST(Kubeconfig, UsesExecOnlyWithoutOtherCredentials) {
  const std::string user =
      "{exec: {command: bin/aws, args: [eks, get-token], apiVersion: x/v1, "
      "env: [{name: A, value: b}]}";
  const auto access = parse_kubeconfig(config("{server: h}", user + "}"), "/etc/k/config");
  ASSERT_TRUE(access) << access.error().message;
  ASSERT_TRUE(access->exec);
  EXPECT_EQ(access->exec->command, "/etc/k/bin/aws");
  EXPECT_EQ(access->exec->arguments, (std::vector<std::string>{"eks", "get-token"}));
  EXPECT_EQ(access->exec->environment.at("A"), "b");
  EXPECT_EQ(access->exec->api_version, "x/v1");
  EXPECT_FALSE(
      parse_kubeconfig(config("{server: h}", user + ", token: t}"), "/etc/k/config")->exec);
}

TEST(Kubeconfig, KeepsSecretsOutOfErrors) {
  const std::string error = error_of(config("{server: h}", "{client-key-data: '5ecret!'}"));
  EXPECT_THAT(error, HasSubstr("expected base64"));
  EXPECT_THAT(error, Not(HasSubstr("5ecret")));
}

TEST(Kubeconfig, IsReadFromItsFile) {
  const auto read = [](const std::string& path) -> Result<std::string> {
    std::ifstream file(path);
    if (!file) {
      return fail(ErrorCode::kNotFound, "open {}", path);
    }
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const testing::TempDir root;
  const std::string file = root.write("config", config("{server: 'http://h'}", "{}"));
  EXPECT_EQ(load_kubeconfig(file, read)->server, "http://h");
  const auto missing = load_kubeconfig(root.path() / "none", read);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("kubeconfig: open "));
}

TEST(InCluster, UsesHostPortAndMount) {
  const auto access = in_cluster_access("10.0.0.1", "443", "/m");
  ASSERT_TRUE(access);
  EXPECT_EQ(access->server, "https://10.0.0.1:443");
  EXPECT_EQ(access->ca_file, "/m/ca.crt");
  EXPECT_EQ(access->token_file, "/m/token");
  EXPECT_EQ(in_cluster_access("fd00::1", "6443")->server, "https://[fd00::1]:6443");
  EXPECT_FALSE(in_cluster_access("", "443"));
  EXPECT_FALSE(in_cluster_access("10.0.0.1", ""));
}

}  // namespace
}  // namespace ceems::kube
