#include "tool/files/check_config.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/config.h"
#include "base/json.h"
#include "cacct/series/config.h"
#include "config/section.h"
#include "config/spelling.h"
#include "exporter/profile/push/config.h"
#include "exporter/redfish/config.h"
#include "ingest/manager/manager.h"
#include "lb/config.h"
#include "net/client/client_config.h"
#include "net/server/web_config.h"
#include "redfish_proxy/config.h"
#include "tool/command.h"

namespace ceems::tool {
namespace {

constexpr std::array<std::string_view, 4> kCustom{"total_custom_stats", "avg_custom_stats",
                                                  "min_custom_stats", "max_custom_stats"};

void add(std::vector<std::string>& notes, const config::Node& node, std::string_view what) {
  notes.push_back(fmt::format("line {}: {}: {}", node.line(), node.where(), what));
}

void note_clusters(const config::Node& clusters, std::vector<std::string>& notes) {
  for (const config::Node& cluster : clusters.items()) {
    const config::Node manager = cluster["manager"];
    const std::string name = manager.as_string().value_or("");
    if (name == "lsf") {
      add(notes, manager, "CEEMS before 0.14 has no manager lsf");
    } else if (!name.empty() && name != "slurm" && name != "openstack" && name != "k8s") {
      add(notes, manager, fmt::format("CEEMS has no manager {}", name));
    }
  }
}

void note_updaters(const config::Node& updaters, std::vector<std::string>& notes) {
  for (const config::Node& updater : updaters.items()) {
    for (const auto& [name, query] : updater["extra_config"]["queries"].entries()) {
      if (std::ranges::find(kCustom, name) != kCustom.end()) {
        add(notes, query, "CEEMS before 0.15 has no custom metrics");
      }
    }
  }
}

/// The queries of cacct, whose form changed with 0.16.
void note_queries(const config::Node& queries, std::vector<std::string>& notes) {
  if (queries.is_list()) {
    add(notes, queries, "CEEMS before 0.16 expects a mapping of names to queries");
    return;
  }
  if (!queries.is_map()) {
    return;
  }
  add(notes, queries, "CEEMS 0.16 and later expects a list of queries with name and kind");
  for (const auto& [name, query] : queries.entries()) {
    if (query.as_string().value_or("").find("{{") != std::string::npos) {
      add(notes, query, "CEEMS before 0.16 knows %s only, no {{.UUIDs}}");
    }
  }
}

/// What in a configuration file some release of CEEMS would refuse or ignore, one sentence each:
/// for sites that come from another release, or want to be able to go back to one. Keys that only
/// this project has are ignored by all releases and not listed.
std::vector<std::string> release_notes(const config::Node& document) {
  std::vector<std::string> notes;
  note_clusters(document["clusters"], notes);
  note_updaters(document["updaters"], notes);
  note_queries(document["tsdb"]["queries"], notes);
  if (document["logging"].present()) {
    add(notes, document["logging"], "CEEMS before 0.12 writes no log of cacct");
  }
  return notes;
}

constexpr std::array<std::string_view, 3> kWebKeys{"tls_server_config", "http_server_config",
                                                   "basic_auth_users"};
constexpr std::array<std::string_view, 9> kClientKeys{
    "basic_auth",   "authorization",     "oauth2",
    "tls_config",   "bearer_token",      "proxy_url",
    "http_headers", "bearer_token_file", "follow_redirects"};

struct Input {
  const config::Node& document;
  const std::string& text;
  const std::string& file;
  const std::string& directory;
};

bool has_any(const config::Node& document, std::span<const std::string_view> keys) {
  return std::ranges::any_of(
      keys, [&](auto key) { return document[key].present() || document[key].is_null(); });
}

/// Keys in extra_config of managers, which ceems_api_server checks when it connects.
Result<> check_managers(const api::Config& config) {
  for (const ingest::ClusterConfig& cluster : config.clusters) {
    const ingest::ManagerSpec* spec = ingest::find_manager(cluster.cluster.manager);
    if (spec != nullptr && cluster.extra.present()) {
      CEEMS_TRY(cluster.extra.only_keys(std::span<const std::string_view>(spec->extra_keys)));
    }
  }
  return {};
}

Result<> check_api_server(const Input& input, FileCheck& check) {
  CEEMS_TRY(config, api::parse_config(input.document, input.directory));
  check.warnings.insert(check.warnings.end(), config.warnings.begin(), config.warnings.end());
  return check_managers(config);
}

Result<> check_lb(const Input& input, FileCheck& /*check*/) {
  const auto config = lb::parse_config(input.document, input.directory);
  return config ? Result<>() : fail(config.error());
}

Result<> check_cacct(const Input& input, FileCheck& /*check*/) {
  const auto config = cacct::parse_config(input.document, input.directory);
  return config ? Result<>() : fail(config.error());
}

Result<> check_redfish_proxy(const Input& input, FileCheck& /*check*/) {
  const auto config = redfish_proxy::parse_config(input.document, input.directory);
  return config ? Result<>() : fail(config.error());
}

exporter::redfish::ConfigContext redfish_context() {
  return {.node_name = "node", .environment = [](const std::string& name) {
            const char* value = std::getenv(name.c_str());
            return std::string(value == nullptr ? "" : value);
          }};
}

Result<> check_redfish(const Input& input, FileCheck& /*check*/) {
  const auto config = exporter::redfish::parse_config(input.text, input.file, redfish_context());
  return config ? Result<>() : fail(config.error());
}

Result<> check_pdu(const Input& input, FileCheck& /*check*/) {
  const auto config =
      exporter::redfish::parse_pdu_config(input.text, input.file, redfish_context());
  return config ? Result<>() : fail(config.error());
}

Result<> check_profiler(const Input& input, FileCheck& /*check*/) {
  const auto config = exporter::profile::parse_config(input.document, input.directory, "node");
  return config ? Result<>() : fail(config.error());
}

Result<> check_web(const Input& input, FileCheck& /*check*/) {
  const auto config = net::parse_web_config(input.document, input.directory);
  return config ? Result<>() : fail(config.error());
}

Result<> check_client(const Input& input, FileCheck& /*check*/) {
  const auto options = net::client_options(input.document, input.directory, {});
  return options ? Result<>() : fail(options.error());
}

struct Program {
  std::string_view name;
  bool (*reads)(const config::Node& document);
  Result<> (*check)(const Input& input, FileCheck& check);
};

constexpr std::array<Program, 9> kPrograms{{
    {"ceems_api_server",
     [](const config::Node& document) {
       const config::Node server = document["ceems_api_server"];
       return document["updaters"].present() || server["data"].present() ||
              server["admin"].present() ||
              (document["clusters"].present() && !document["ceems_lb"].present());
     },
     check_api_server},
    {"ceems_lb", [](const config::Node& document) { return document["ceems_lb"].present(); },
     check_lb},
    {"cacct",
     [](const config::Node& document) {
       const config::Node server = document["ceems_api_server"];
       const bool alone = document.entries().size() == 1 && !server["data"].present() &&
                          !server["admin"].present();
       return document["tsdb"].present() || server["cluster_id"].present() ||
              server["user_header_name"].present() || (alone && server["web"].present());
     },
     check_cacct},
    {"redfish_proxy",
     [](const config::Node& document) {
       return document["redfish_proxy"].present() || document["redfish_config"].present();
     },
     check_redfish_proxy},
    {"ceems_exporter (Redfish)",
     [](const config::Node& document) {
       return document["redfish_collector"].present() || document["redfish_web_config"].present();
     },
     check_redfish},
    {"ceems_exporter (PDU)",
     [](const config::Node& document) { return document["pdu_collector"].present(); }, check_pdu},
    {"ceems_exporter (profiler)",
     [](const config::Node& document) { return document["ceems_profiler"].present(); },
     check_profiler},
    {"web configuration", [](const config::Node& document) { return has_any(document, kWebKeys); },
     check_web},
    {"HTTP client configuration",
     [](const config::Node& document) { return has_any(document, kClientKeys); }, check_client},
}};

/// Why no program reads the document, with the key that was probably meant.
Error unread(const config::Node& document, const std::string& file) {
  if (!document.is_map()) {
    return {ErrorCode::kInvalidArgument,
            fmt::format("{}: expected a mapping with the sections of a program", file)};
  }
  std::vector<std::string_view> known(config::kTopLevelKeys.begin(), config::kTopLevelKeys.end());
  known.insert(known.end(), kWebKeys.begin(), kWebKeys.end());
  known.insert(known.end(), kClientKeys.begin(), kClientKeys.end());
  if (auto only = document.only_keys(known); !only) {
    return only.error();
  }
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: it has no section that this program can check", file)};
}

std::string read_text(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

FileCheck check_config_document(const config::Node& document,
                                const std::string& text,
                                const std::string& file,
                                const std::string& directory) {
  FileCheck result{.file = file,
                   .programs = {},
                   .warnings = {},
                   .releases = release_notes(document),
                   .error = {}};
  const Input input{.document = document, .text = text, .file = file, .directory = directory};
  for (const Program& program : kPrograms) {
    if (!program.reads(document)) {
      continue;
    }
    result.programs.emplace_back(program.name);
    if (auto checked = program.check(input, result); !checked && result.error.empty()) {
      result.error = checked.error().message;
    }
  }
  if (result.programs.empty()) {
    result.error = unread(document, file).message;
  }
  return result;
}

FileCheck check_config_file(const std::string& file, bool expand_env) {
  const auto document = config::load_yaml(file, expand_env);
  if (!document) {
    return {.file = file,
            .programs = {},
            .warnings = {},
            .releases = {},
            .error = document.error().message};
  }
  return check_config_document(*document, read_text(file), file, config::directory_of(file));
}

namespace {

class CheckConfig final : public Command {
 public:
  [[nodiscard]] std::string_view words() const override { return "check config"; }
  [[nodiscard]] std::string_view help() const override {
    return "Check configuration files of any program before it starts.";
  }
  void add_flags(config::FlagSet& flags) override {
    flags.positionals("files", files_, "The files to check.");
    flags.add("expand-env-vars", expand_env_,
              {.help = "Replace $NAME and ${NAME} in the files with environment variables, as with "
                       "--config.file.expand-env-vars."});
    flags.add("json", json_, {.help = "Print the results as JSON to stdout."});
  }
  Result<int> run(Console& console) override {
    if (files_.empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  "required argument 'files' not provided, try --help");
    }
    std::vector<FileCheck> checks;
    checks.reserve(files_.size());
    for (const std::string& file : files_) {
      checks.push_back(check_config_file(file, expand_env_));
    }
    if (json_) {
      console.print(as_json(checks) + "\n");
    } else {
      show(checks, console);
    }
    return std::ranges::all_of(checks, &std::string::empty, &FileCheck::error) ? 0 : 1;
  }

 private:
  static void show(const std::vector<FileCheck>& checks, Console& console) {
    for (const FileCheck& check : checks) {
      const std::string programs =
          check.programs.empty() ? "" : fmt::format(" ({})", fmt::join(check.programs, ", "));
      for (const std::string& warning : check.warnings) {
        console.say(fmt::format("{}{} WARNING: {}", check.file, programs, warning));
      }
      for (const std::string& note : check.releases) {
        console.say(fmt::format("{}{} RELEASES: {}", check.file, programs, note));
      }
      console.say(check.error.empty()
                      ? fmt::format("{}{} SUCCESS", check.file, programs)
                      : fmt::format("{}{} FAILED: {}", check.file, programs, check.error));
    }
  }

  static std::string as_json(const std::vector<FileCheck>& checks) {
    std::string out;
    JsonWriter json(out, JsonEscape::kPlain);
    json.begin_array();
    for (const FileCheck& check : checks) {
      json.begin_object().member("file", check.file).member("ok", check.error.empty());
      for (const auto& [key, list] :
           {std::pair("programs", &check.programs), std::pair("warnings", &check.warnings),
            std::pair("releases", &check.releases)}) {
        json.key(key).begin_array();
        for (const std::string& text : *list) {
          json.value(text);
        }
        json.end_array();
      }
      if (!check.error.empty()) {
        json.member("error", check.error);
      }
      json.end_object();
    }
    json.end_array();
    return out;
  }

  std::vector<std::string> files_;
  bool expand_env_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> check_config_command() {
  return std::make_unique<CheckConfig>();
}

}  // namespace ceems::tool
