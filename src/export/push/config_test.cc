#include "export/push/config.h"

#include <gtest/gtest.h>

namespace ceems::exporting {
namespace {

Result<std::vector<Target>> read(const std::string& yaml) {
  const auto document = config::parse_yaml(yaml, "c.yml");
  EXPECT_TRUE(document);
  return read_targets((*document)["export"], "/etc/ceems");
}

TEST(ExportTargets, AreRead) {
  const auto targets = read(R"(
export:
  - name: prometheus
    protocol: remote_write
    web: {url: 'http://p:9090/api/v1/write', basic_auth: {username: u, password_file: pass}}
  - name: otel-1.site
    protocol: otlp
    web: {url: 'https://o:4318/v1/metrics', tls_config: {insecure_skip_verify: true}}
    labels: [project, user]
)");
  ASSERT_TRUE(targets) << targets.error().message;
  ASSERT_EQ(targets->size(), 2U);
  EXPECT_EQ((*targets)[0].name, "prometheus");
  EXPECT_EQ((*targets)[0].protocol, Protocol::kRemoteWrite);
  EXPECT_EQ((*targets)[0].url, "http://p:9090/api/v1/write");
  EXPECT_EQ((*targets)[0].client.basic_auth->password_file, "/etc/ceems/pass");
  EXPECT_FALSE((*targets)[0].with_user || (*targets)[0].with_project);
  EXPECT_EQ((*targets)[1].protocol, Protocol::kOtlp);
  EXPECT_TRUE((*targets)[1].client.tls.insecure_skip_verify);
  EXPECT_TRUE((*targets)[1].with_user && (*targets)[1].with_project);
}

TEST(ExportTargets, NoneIsTheDefault) {
  const auto targets = read("other: 1");
  ASSERT_TRUE(targets);
  EXPECT_TRUE(targets->empty());
}

TEST(ExportTargets, MistakesAreNamedWithTheirLine) {
  const auto refused = [](const std::string& item) {
    const auto targets = read("export:\n  - " + item);
    return targets ? "" : targets.error().message;
  };
  const std::string web = ", web: {url: 'http://h/'}";
  const auto says = [&](const std::string& item, const std::string& what) {
    const std::string message = refused(item);
    EXPECT_TRUE(message.starts_with("c.yml:") && message.contains(what)) << item << ": " << message;
  };
  says("{protocol: otlp" + web + "}", "expected a name");
  says("{name: 'a b', protocol: otlp" + web + "}", "expected a name");
  says("{name: a" + web + "}", "expected remote_write or otlp");
  says("{name: a, protocol: kafka" + web + "}", "expected remote_write or otlp");
  says("{name: a, protocol: otlp}", "expected web.url");
  says("{name: a, protocol: otlp, web: {url: 'ftp://h/'}}", "expected web.url");
  says("{name: a, protocol: otlp, web: {url: 'http://h/', prox: x}}", "prox");
  says("{name: a, protocol: otlp, labels: [group]" + web + "}", "expected user or project");
  says("{name: a, protocol: otlp, retries: 4" + web + "}", "retries");
  says("{name: a, protocol: otlp" + web + "}\n  - {name: a, protocol: otlp" + web + "}",
       "two targets 'a'");
  says("x", "expected a mapping");
  EXPECT_FALSE(read("export: {name: a}"));
}

}  // namespace
}  // namespace ceems::exporting
