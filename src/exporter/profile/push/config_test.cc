#include "exporter/profile/push/config.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

Result<ProfilerConfig> read(std::string_view text) {
  CEEMS_TRY(document, config::parse_yaml(text, "p.yml"));
  return parse_config(document, "/etc/ceems_exporter", "node7");
}

std::string refusal(std::string_view text) {
  const auto config = read(text);
  return config ? "accepted" : config.error().message;
}
std::string ebpf(const std::string& text) {
  return refusal("ceems_profiler:\n  ebpf:\n    " + text + "\n");
}
std::string pyroscope(const std::string& text) {
  return refusal("ceems_profiler:\n  pyroscope:\n    " + text + "\n");
}

void expect_defaults(const ProfilerConfig& config) {
  const SamplingConfig& sampling = config.sampling;
  EXPECT_EQ(sampling.collect_interval, std::chrono::seconds(30));
  EXPECT_EQ(sampling.discover_interval, std::chrono::seconds(30));
  EXPECT_TRUE(sampling.collect_user_profile);
  EXPECT_FALSE(sampling.collect_kernel_profile);
  EXPECT_TRUE(sampling.python_enabled);
  EXPECT_EQ(sampling.sample_rate, 97);
  EXPECT_EQ(sampling.demangle, DemangleMode::kNone);
  EXPECT_EQ(sampling.build_id_cache_size, 64);
  EXPECT_EQ(sampling.pid_cache_size, 32);
  EXPECT_EQ(sampling.same_file_cache_size, 8);
  EXPECT_EQ(sampling.cache_rounds, 3);
  EXPECT_EQ(sampling.pid_map_size, 2048);
  EXPECT_EQ(sampling.symbols_map_size, 16384);
  EXPECT_THAT(config.debuginfod.urls, IsEmpty()) << "nothing is fetched";
  EXPECT_EQ(config.debuginfod.directory, "/var/lib/ceems_exporter/debuginfod");
  const PushConfig& push = config.push;
  EXPECT_EQ(push.url, "http://localhost:4040");
  EXPECT_THAT(push.external_labels, IsEmpty());
  EXPECT_FALSE(push.gzip);
  EXPECT_EQ(push.queue_size, 512);
  EXPECT_EQ(push.retries, 5);
  EXPECT_TRUE(push.client.follow_redirects);
  EXPECT_TRUE(push.client.enable_http2);
  EXPECT_FALSE(push.client.basic_auth);
}

TEST(ProfilerConfig, HasTheSameDefaultsHoweverLittleIsGiven) {
  for (const std::string_view text :
       {"", "ceems_profiler:\n", "ceems_profiler: {}\n", "ceems_profiler: {ebpf: {}}\n",
        "ceems_profiler: {pyroscope: {}}\n", "ceems_profiler:\n  ebpf:\n  pyroscope:\n",
        "ceems_lb: {anything: 1}\n"}) {
    const auto config = read(text);
    ASSERT_TRUE(config) << text << config.error().message;
    expect_defaults(*config);
  }
  const auto without_file = read_config("", false, "node7");
  ASSERT_TRUE(without_file);
  expect_defaults(*without_file);
}

TEST(ProfilerConfig, ReadsEveryKey) {
  const auto config = read(R"(
ceems_profiler:
  ebpf:
    collect_interval: 1m30s
    discover_interval: 500ms
    collect_user_profile: false
    collect_kernel_profile: true
    python_enabled: false
    sample_rate: 49
    demangle: " Templates "
    build_id_cache_size: 1
    pid_cache_size: 2
    same_file_cache_size: 3
    cache_rounds: 0
    pid_map_size: 4
    symbols_map_size: 5
  pyroscope:
    url: https://pyroscope.example.org/push//
    external_labels: {cluster: jz, node: "{hostname}-{hostname}", rack.id: 7}
    compression: gzip
    queue_size: 100
    retries: 0
    basic_auth: {username: u, password_file: secret}
    tls_config: {ca_file: ca.pem}
    follow_redirects: false
    enable_http2: false
    http_headers: {X-Scope-OrgID: {values: [hpc]}}
  debuginfod:
    urls: [https://debuginfod.example.org/, http://127.0.0.1:8002]
    directory: cache
    max_file_mb: 10
    max_cache_mb: 20
    timeout: 7s
    basic_auth: {username: d, password_file: secret}
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->debuginfod.urls,
              ElementsAre("https://debuginfod.example.org", "http://127.0.0.1:8002"));
  EXPECT_EQ(config->debuginfod.directory, "/etc/ceems_exporter/cache");
  EXPECT_EQ(config->debuginfod.max_file_bytes, 10 << 20);
  EXPECT_EQ(config->debuginfod.max_cache_bytes, 20 << 20);
  EXPECT_EQ(config->debuginfod.timeout, std::chrono::seconds(7));
  EXPECT_EQ(config->debuginfod.client.basic_auth->username, "d");
  const SamplingConfig& sampling = config->sampling;
  EXPECT_EQ(sampling.collect_interval, std::chrono::seconds(90));
  EXPECT_EQ(sampling.discover_interval, std::chrono::milliseconds(500));
  EXPECT_FALSE(sampling.collect_user_profile);
  EXPECT_TRUE(sampling.collect_kernel_profile);
  EXPECT_FALSE(sampling.python_enabled);
  EXPECT_EQ(sampling.sample_rate, 49);
  EXPECT_EQ(sampling.demangle, DemangleMode::kTemplates);
  EXPECT_EQ(sampling.build_id_cache_size, 1);
  EXPECT_EQ(sampling.pid_cache_size, 2);
  EXPECT_EQ(sampling.same_file_cache_size, 3);
  EXPECT_EQ(sampling.cache_rounds, 0);
  // Not swapped, as the reference swaps them.
  EXPECT_EQ(sampling.pid_map_size, 4);
  EXPECT_EQ(sampling.symbols_map_size, 5);
  const PushConfig& push = config->push;
  EXPECT_EQ(push.url, "https://pyroscope.example.org/push");
  EXPECT_THAT(push.external_labels, ElementsAre(Pair("cluster", "jz"), Pair("node", "node7-node7"),
                                                Pair("rack.id", "7")));
  EXPECT_TRUE(push.gzip);
  EXPECT_EQ(push.queue_size, 100);
  EXPECT_EQ(push.retries, 0);
  ASSERT_TRUE(push.client.basic_auth);
  EXPECT_EQ(push.client.basic_auth->password_file, "/etc/ceems_exporter/secret");
  EXPECT_EQ(push.client.tls.ca_file, "/etc/ceems_exporter/ca.pem");
  EXPECT_FALSE(push.client.follow_redirects);
  EXPECT_FALSE(push.client.enable_http2);
  EXPECT_EQ(push.client.headers.count("X-Scope-OrgID"), 1U);
}

TEST(ProfilerConfig, KnowsEveryWayToDemangle) {
  const auto demangle = [](const std::string& name) {
    const auto config = read("ceems_profiler: {ebpf: {demangle: " + name + "}}");
    EXPECT_TRUE(config) << name;
    return config ? config->sampling.demangle : DemangleMode::kNone;
  };
  EXPECT_EQ(demangle("NONE"), DemangleMode::kNone);
  EXPECT_EQ(demangle("simplified"), DemangleMode::kSimplified);
  EXPECT_EQ(demangle("Full"), DemangleMode::kFull);
  EXPECT_EQ(ebpf("demangle: some"),
            "p.yml:3: ceems_profiler.ebpf.demangle: expected one of none, simplified, templates, "
            "full; got 'some'");
}

TEST(ProfilerConfig, NamesTheLineOfAMistake) {
  EXPECT_THAT(ebpf("sampel_rate: 97"), HasSubstr("p.yml:3: ceems_profiler.ebpf"));
  EXPECT_THAT(ebpf("sampel_rate: 97"), HasSubstr("sample_rate"));  // the nearest key
  EXPECT_THAT(ebpf("sample_rate: 0"),
              HasSubstr("p.yml:3: ceems_profiler.ebpf.sample_rate: expected a number from 1 to "
                        "10000, got 0"));
  EXPECT_THAT(ebpf("sample_rate: fast"), HasSubstr("p.yml:3: ceems_profiler.ebpf.sample_rate"));
  EXPECT_THAT(ebpf("collect_interval: 0s"), HasSubstr("expected 100ms to 24h"));
  EXPECT_THAT(ebpf("discover_interval: 25h"), HasSubstr("expected 100ms to 24h"));
  EXPECT_THAT(ebpf("collect_interval: soon"), HasSubstr("p.yml:3:"));
  EXPECT_THAT(ebpf("pid_map_size: 4294967296"), HasSubstr("1 to 16777216"));
  EXPECT_THAT(ebpf("cache_rounds: -1"), HasSubstr("cache_rounds: expected a number from 0"));
  EXPECT_THAT(ebpf("python_enabled: maybe"), HasSubstr("python_enabled"));
  EXPECT_THAT(refusal("ceems_profiler: {ebpff: {}}"), HasSubstr("ebpf"));
  EXPECT_THAT(refusal("ceems_profilers: {}"), HasSubstr("ceems_profiler"));
  EXPECT_THAT(refusal("ceems_profiler: [ebpf]"), HasSubstr("expected a mapping"));
  EXPECT_THAT(refusal("[]"), HasSubstr("expected a mapping"));
  EXPECT_THAT(pyroscope("compression: zstd"), HasSubstr("expected one of none, gzip; got 'zstd'"));
  EXPECT_THAT(pyroscope("queue_size: 0"), HasSubstr("queue_size: expected a number from 1"));
  EXPECT_THAT(pyroscope("retries: 101"), HasSubstr("retries: expected a number from 0 to 100"));
  EXPECT_THAT(pyroscope("basic_auth: {user: x}"), HasSubstr("p.yml:3:"));
  EXPECT_THAT(pyroscope("scrape_interval: 1s"), HasSubstr("scrape_interval"));
}

TEST(ProfilerConfig, RefusesWhatIsNoUrlWithoutRepeatingIt) {
  for (const std::string_view url :
       {"localhost:4040", "ftp://u:secret@h", "http://", "http:///path", "http://u:secret@", "''",
        "http://h:port", "http://h:0", "http://h:65536", "'http://h/?q=secret'", "'http://h/#f'",
        "'http://h /'", "http://[]:80", "unix://relative", "\"http://h/\\0\""}) {
    const std::string message = pyroscope("url: " + std::string(url));
    EXPECT_THAT(message, HasSubstr("p.yml:3: ceems_profiler.pyroscope.url: ")) << url;
    EXPECT_THAT(message, Not(HasSubstr("secret"))) << url;
  }
  const auto base = [](const std::string& url) {
    const auto config = read("ceems_profiler: {pyroscope: {url: '" + url + "'}}");
    return config ? config->push.url : config.error().message;
  };
  EXPECT_EQ(base("http://u:p@h:4040/"), "http://u:p@h:4040");
  EXPECT_EQ(base("http://[2001:db8::1]:4040/a/b"), "http://[2001:db8::1]:4040/a/b");
  EXPECT_EQ(base("unix:///run/pyroscope.sock"), "http://localhost");
  EXPECT_EQ(base("unix:///run/pyroscope.sock:/prefix/"), "http://localhost/prefix");
  EXPECT_EQ(
      read("ceems_profiler: {pyroscope: {url: 'unix:///run/p.sock'}}")->push.client.unix_socket,
      "/run/p.sock");
}

TEST(ProfilerConfig, NoLabelCanChangeWhoseProfileItIs) {
  for (const std::string_view name : {"service_name", "__name__", "__process_pid__"}) {
    EXPECT_THAT(pyroscope("external_labels: {" + std::string(name) + ": x}"),
                HasSubstr("p.yml:3: ceems_profiler.pyroscope.external_labels." + std::string(name) +
                          ": the profiler itself sets this label"));
  }
  EXPECT_THAT(pyroscope("external_labels: {'7up': x}"), HasSubstr("invalid label name '7up'"));
  EXPECT_THAT(pyroscope("external_labels: {'a b': x}"), HasSubstr("invalid label name 'a b'"));
  EXPECT_THAT(pyroscope("external_labels: {'': x}"), HasSubstr("invalid label name ''"));
  EXPECT_THAT(pyroscope("external_labels: {a: [x]}"), HasSubstr("external_labels.a"));
  EXPECT_THAT(pyroscope("external_labels: [a]"), HasSubstr("expected a mapping"));
}

TEST(ProfilerConfig, ReadsFilesAndExpandsVariablesOnlyWhenAskedTo) {
  const ceems::testing::TempDir dir;
  ::setenv("CEEMS_TEST_CLUSTER", "jz", 1);
  ::unsetenv("CEEMS_TEST_UNSET");
  const std::string path = dir.write("p.yml",
                                     "ceems_profiler:\n"
                                     "  pyroscope:\n"
                                     "    external_labels:\n"
                                     "      a: ${CEEMS_TEST_CLUSTER}\n"
                                     "      b: x$CEEMS_TEST_UNSET-$$y\n"
                                     "    bearer_token_file: token\n");
  const auto expanded = read_config(path, true, "node7");
  ASSERT_TRUE(expanded) << expanded.error().message;
  EXPECT_THAT(expanded->push.external_labels, ElementsAre(Pair("a", "jz"), Pair("b", "x-$y")));
  EXPECT_EQ(expanded->push.client.authorization->credentials_file, dir.path() / "token");
  const auto plain = read_config(path, false, "node7");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->push.external_labels.at("a"), "${CEEMS_TEST_CLUSTER}");

  const std::string refused = dir.write("r.yml", "ceems_profiler: {} # [[{$}]]\n");
  EXPECT_TRUE(read_config(refused, false, "node7"));
  const auto literal = read_config(refused, true, "node7");
  ASSERT_FALSE(literal);
  EXPECT_THAT(literal.error().message, HasSubstr("not supported with literal template token"));
  EXPECT_THAT(read_config(dir.path() / "none.yml", false, "n").error().message,
              HasSubstr("none.yml"));
}

TEST(ProfilerConfig, RefusesADebuginfodThatCannotWork) {
  const auto debuginfod = [](const std::string& text) {
    return refusal("ceems_profiler:\n  debuginfod:\n    " + text + "\n");
  };
  EXPECT_EQ(debuginfod("max_file_mb: 1"),
            "p.yml:3: ceems_profiler.debuginfod: expected at least one URL");
  EXPECT_EQ(debuginfod("urls: [debuginfod.example.org]"),
            "p.yml:3: ceems_profiler.debuginfod.urls: expected URLs such as "
            "https://debuginfod.example.org");
  EXPECT_EQ(debuginfod("urls: [http://d]\n    max_file_mb: 0"),
            "p.yml:4: ceems_profiler.debuginfod.max_file_mb: expected a number from 1 to 4096, got "
            "0");
  EXPECT_EQ(debuginfod("urls: [http://d]\n    timeout: 2h"),
            "p.yml:4: ceems_profiler.debuginfod.timeout: expected 1s to 1h");
  EXPECT_EQ(debuginfod("url: http://d"),
            "p.yml:3: ceems_profiler.debuginfod.url: unknown key, did you mean 'urls'?");
}

}  // namespace
}  // namespace ceems::exporter::profile
