#include "exporter/profile/push/config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "config/section.h"
#include "net/client/client_config.h"
#include "net/unix_url.h"

namespace ceems::exporter::profile {
namespace {

using config::Node;
using config::Section;
using std::chrono::milliseconds;

constexpr milliseconds kMinInterval{100};
constexpr milliseconds kMaxInterval{std::chrono::hours(24)};

/// Reads a number from `least` to `most`.
void read_number(Section& section,
                 std::string_view key,
                 std::int64_t& target,
                 std::int64_t least,
                 std::int64_t most) {
  section.integer(key, target)
      .refuse(target < least || target > most, key,
              fmt::format("expected a number from {} to {}, got {}", least, most, target));
}

void read_interval(Section& section, std::string_view key, milliseconds& target) {
  section.duration(key, target)
      .refuse(target < kMinInterval || target > kMaxInterval, key, "expected 100ms to 24h");
}

/// The position of the value of `key` in `choices`, which is compared trimmed and in any case.
template <std::size_t N>
Result<std::size_t> read_choice(const Node& node,
                                std::string_view key,
                                const std::array<std::string_view, N>& choices) {
  const Node value = node[key];
  if (!value.present()) {
    return 0;
  }
  CEEMS_TRY(text, value.as_string());
  const auto* const found = std::ranges::find(choices, to_lower(trim(text)));
  if (found == choices.end()) {
    return fail(value.error(
        fmt::format("expected one of {}; got '{}'", fmt::join(choices, ", "), printable(text))));
  }
  return static_cast<std::size_t>(found - choices.begin());
}

Result<> read_demangle(const Node& node, SamplingConfig& config) {
  // In the order of DemangleMode.
  constexpr std::array<std::string_view, 4> kNames = {"none", "simplified", "templates", "full"};
  CEEMS_TRY(choice, read_choice(node, "demangle", kNames));
  config.demangle = static_cast<DemangleMode>(choice);
  return {};
}

Result<> read_sampling(const Node& node, SamplingConfig& config) {
  constexpr std::int64_t kMaxRate = 10'000;
  constexpr std::int64_t kMaxCache = 1'000'000;
  constexpr std::int64_t kMaxMap = std::int64_t{1} << 24U;
  Section section(node);
  section.only({"collect_interval", "discover_interval", "collect_user_profile",
                "collect_kernel_profile", "python_enabled", "sample_rate", "demangle",
                "build_id_cache_size", "pid_cache_size", "same_file_cache_size", "cache_rounds",
                "pid_map_size", "symbols_map_size"});
  read_interval(section, "collect_interval", config.collect_interval);
  read_interval(section, "discover_interval", config.discover_interval);
  section.boolean("collect_user_profile", config.collect_user_profile)
      .boolean("collect_kernel_profile", config.collect_kernel_profile)
      .boolean("python_enabled", config.python_enabled)
      .also(read_demangle(node, config));
  read_number(section, "sample_rate", config.sample_rate, 1, kMaxRate);
  read_number(section, "build_id_cache_size", config.build_id_cache_size, 1, kMaxCache);
  read_number(section, "pid_cache_size", config.pid_cache_size, 1, kMaxCache);
  read_number(section, "same_file_cache_size", config.same_file_cache_size, 1, kMaxCache);
  read_number(section, "cache_rounds", config.cache_rounds, 0, kMaxCache);
  read_number(section, "pid_map_size", config.pid_map_size, 1, kMaxMap);
  read_number(section, "symbols_map_size", config.symbols_map_size, 1, kMaxMap);
  return section.done();
}

/// Whether "user@host:port" is complete, without what belongs to other parts of a URL.
bool is_authority(std::string_view text) {
  std::string_view host = text.substr(text.rfind('@') + 1);
  if (const std::size_t colon = host.find(':', host.rfind(']') + 1);
      colon != std::string_view::npos) {
    const auto port = parse_int<int>(host.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535) {
      return false;
    }
    host = host.substr(0, colon);
  }
  return !host.empty() && host != "[]";
}

/// The URL below which the server listens; nothing if the text is not one. It may hold a password.
std::optional<std::string> base_url(std::string_view text) {
  std::string url(text);
  if (net::is_unix_url(text)) {
    auto socket = net::parse_unix_url(text);
    if (!socket) {
      return std::nullopt;
    }
    url = std::move(socket->http);
  }
  const std::size_t scheme = url.starts_with("http://") ? 7 : (url.starts_with("https://") ? 8 : 0);
  const bool clean = std::ranges::all_of(
      url, [](char c) { return c > ' ' && c < '\x7f' && c != '?' && c != '#' && c != '\\'; });
  if (scheme == 0 || !clean || !is_authority(url.substr(scheme, url.find('/', scheme) - scheme))) {
    return std::nullopt;
  }
  while (url.ends_with('/')) {
    url.pop_back();
  }
  return url;
}

Result<> read_url(const Node& node, PushConfig& config) {
  const Node value = node["url"];
  if (!value.present()) {
    return {};
  }
  CEEMS_TRY(text, value.as_string());
  auto url = base_url(text);
  if (!url) {
    return fail(value.error("expected a URL such as http://pyroscope:4040 or unix:///path"));
  }
  config.url = std::move(*url);
  return {};
}

/// What Pyroscope accepts as the name of a label.
bool is_label(std::string_view name) {
  constexpr std::size_t kMaxBytes = 1024;
  return !name.empty() && name.size() <= kMaxBytes && !is_digit(name[0]) &&
         has_only_words(name, "_.");
}

std::string with_hostname(std::string text, std::string_view hostname) {
  constexpr std::string_view kPlaceholder = "{hostname}";
  for (std::size_t at = 0; (at = text.find(kPlaceholder, at)) != std::string::npos;
       at += hostname.size()) {
    text.replace(at, kPlaceholder.size(), hostname);
  }
  return text;
}

Result<> read_labels(const Node& node, std::string_view hostname, PushConfig& config) {
  // A second label of these names would decide whose profile it is.
  constexpr std::array<std::string_view, 3> kOurs = {"__name__", "__process_pid__", "service_name"};
  if (node.present() && !node.is_map()) {
    return fail(node.error("expected a mapping of names to values"));
  }
  for (const auto& [name, value] : node.entries()) {
    if (!is_label(name)) {
      return fail(value.error(fmt::format("invalid label name '{}'", printable(name))));
    }
    if (std::ranges::find(kOurs, name) != kOurs.end()) {
      return fail(value.error("the profiler itself sets this label"));
    }
    CEEMS_TRY(text, value.as_string());
    config.external_labels[name] = with_hostname(std::move(text), hostname);
  }
  return {};
}

Result<> read_compression(const Node& node, PushConfig& config) {
  constexpr std::array<std::string_view, 2> kNames = {"none", "gzip"};
  CEEMS_TRY(choice, read_choice(node, "compression", kNames));
  config.gzip = choice == 1;
  return {};
}

Result<> read_push(const Node& node,
                   const std::string& directory,
                   std::string_view hostname,
                   PushConfig& config) {
  constexpr std::int64_t kMaxQueue = 65'536;
  constexpr std::int64_t kMaxRetries = 100;
  CEEMS_TRY(client, net::client_options(
                        node, directory,
                        {"url", "external_labels", "compression", "queue_size", "retries"}));
  config.client = std::move(client);
  Section section(node);
  section.also(read_url(node, config))
      .also(read_labels(node["external_labels"], hostname, config))
      .also(read_compression(node, config));
  read_number(section, "queue_size", config.queue_size, 1, kMaxQueue);
  read_number(section, "retries", config.retries, 0, kMaxRetries);
  return section.done();
}

Result<> read_debuginfod(const Node& node,
                         const std::string& directory,
                         DebuginfodOptions& options) {
  constexpr std::int64_t kMegabyte = std::int64_t{1} << 20U;
  constexpr std::int64_t kMaxFile = 4096;
  constexpr std::int64_t kMaxCache = std::int64_t{1} << 20U;
  CEEMS_TRY(client,
            net::client_options(node, directory,
                                {"urls", "directory", "max_file_mb", "max_cache_mb", "timeout"}));
  options.client = std::move(client);
  std::int64_t file = options.max_file_bytes / kMegabyte;
  std::int64_t cache = options.max_cache_bytes / kMegabyte;
  std::vector<std::string> urls;
  Section section(node);
  section.list("urls", urls)
      .file("directory", options.directory, directory)
      .duration("timeout", options.timeout)
      .refuse(node.present() && urls.empty(), "urls", "expected at least one URL")
      .refuse(options.directory.empty(), "directory", "expected a directory")
      .refuse(options.timeout < std::chrono::seconds(1) || options.timeout > std::chrono::hours(1),
              "timeout", "expected 1s to 1h");
  read_number(section, "max_file_mb", file, 1, kMaxFile);
  read_number(section, "max_cache_mb", cache, 1, kMaxCache);
  for (const std::string& text : urls) {
    auto url = base_url(text);
    section.refuse(!url || net::is_unix_url(text), "urls",
                   "expected URLs such as https://debuginfod.example.org");
    options.urls.push_back(url.value_or(std::string()));
  }
  options.max_file_bytes = file * kMegabyte;
  options.max_cache_bytes = cache * kMegabyte;
  return section.done();
}

}  // namespace

Result<ProfilerConfig> parse_config(const Node& document,
                                    const std::string& directory,
                                    std::string_view hostname) {
  ProfilerConfig config;
  const Node node = document["ceems_profiler"];
  CEEMS_TRY(Section(document)
                .only(config::kTopLevelKeys)
                .also(Section(node).only({"ebpf", "pyroscope", "debuginfod"}).done())
                .also(read_sampling(node["ebpf"], config.sampling))
                .also(read_push(node["pyroscope"], directory, hostname, config.push))
                .also(read_debuginfod(node["debuginfod"], directory, config.debuginfod))
                .done());
  return config;
}

Result<ProfilerConfig> read_config(const std::string& path,
                                   bool expand_env,
                                   std::string_view hostname) {
  if (path.empty()) {
    return ProfilerConfig{};
  }
  return config::read_config(path, expand_env,
                             [&](const Node& document, const std::string& directory) {
                               return parse_config(document, directory, hostname);
                             });
}

}  // namespace ceems::exporter::profile
