#include "cacct/series/config.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "config/section.h"
#include "net/client/client_config.h"
#include "net/client/tls_files.h"
#include "os/secret.h"
#include "tsdb/client.h"

namespace ceems::cacct {
namespace {

using config::Node;
using config::Section;

constexpr std::int64_t kMaxUnits = 10;  // of the reference from 0.16 on

/// `web`: a URL and the options of an HTTP client.
Result<> read_web(const Node& node,
                  const std::string& directory,
                  std::string& url,
                  net::ClientOptions& client) {
  if (!node.present()) {
    return {};
  }
  CEEMS_TRY(options, net::client_options(node, directory, {"url", "requests_limit"}));
  client = std::move(options);
  return Section(node).text("url", url).refuse(url.empty(), "url", "expected a URL").done();
}

Result<SeriesQuery> read_query(const Node& node, bool always_range) {
  SeriesQuery query;
  std::string text;
  std::string kind = "range";
  Section section(node);
  section.only({"name", "title", "help", "query", "kind"})
      .text("name", query.name)
      .text("title", query.title)
      .text("help", query.help)
      .text("query", text)
      .text("kind", kind)
      .refuse(query.name.empty(), "name", "expected a name")
      .refuse(kind != "range" && kind != "instant", "kind", "expected range or instant")
      .refuse(always_range && kind != "range", "kind", "expected range")
      .refuse(text.empty(), "query", "expected a query");
  if (section.ok()) {
    if (auto set = query.set_text(text); !set) {
      section.refuse(true, "query", set.error().message);
    }
  }
  if (!section.ok()) {
    return fail(section.done().error());
  }
  query.instant = kind == "instant";
  query.title = query.title.empty() ? query.name : query.title;
  return query;
}

/// A list of objects, or a mapping from names to queries.
Result<> read_queries(const Node& node, bool always_range, Config& config) {
  if (node.is_map()) {
    for (const auto& [name, value] : node.entries()) {
      CEEMS_TRY(text, value.as_string());
      SeriesQuery query;
      query.name = name;
      query.title = name;
      if (auto set = query.set_text(text); !set) {
        return fail(value.error(set.error().message));
      }
      config.queries.push_back(std::move(query));
    }
    return {};
  }
  if (node.present() && !node.is_list()) {
    return fail(node.error("expected a list, or a mapping from names to queries"));
  }
  config.listed = config.listed || node.is_list();
  for (const Node& item : node.items()) {
    CEEMS_TRY(query, read_query(item, always_range));
    if (std::ranges::find(config.queries, query.name, &SeriesQuery::name) != config.queries.end()) {
      return fail(item.error(fmt::format("the name '{}' is used twice", printable(query.name))));
    }
    config.queries.push_back(std::move(query));
  }
  return {};
}

Result<> read_interval(const Node& node, std::optional<std::chrono::milliseconds>& interval) {
  if (!node.present()) {
    return {};
  }
  CEEMS_TRY(value, node.as_duration());
  if (value.count() <= 0) {
    return fail(node.error("expected more than 0"));
  }
  interval = value;
  return {};
}

Result<> read_max_units(const Node& node, Config& config) {
  for (const std::string_view key : {"max_units", "max_units_for_range_queries"}) {
    const Node value = node[key];
    if (!value.present()) {
      continue;
    }
    CEEMS_TRY(number, value.as_int());
    if (number < 1) {
      return fail(value.error("expected at least 1"));
    }
    config.max_units = number;
  }
  if (config.listed && !config.max_units) {
    config.max_units = kMaxUnits;
  }
  return {};
}

Result<> read_tsdb(const Node& node, const std::string& directory, Config& config) {
  Section section(node);
  section
      .only({"web", "queries", "range_queries", "max_units", "max_units_for_range_queries",
             "scrape_interval", "evaluation_interval"})
      .also(read_web(node["web"], directory, config.tsdb_url, config.tsdb_client))
      .also(read_queries(node["queries"], false, config))
      .also(read_queries(node["range_queries"], true, config));
  return section.also(read_interval(node["scrape_interval"], config.scrape_interval))
      .also(read_interval(node["evaluation_interval"], config.evaluation_interval))
      .also(read_max_units(node, config))
      .done();
}

Result<> read_logging(const Node& node, const std::string& directory, LogOptions& log) {
  std::string level = "info";
  std::string format = "logfmt";
  Section section(node);
  section.only({"enabled", "level", "format", "directory"})
      .boolean("enabled", log.enabled)
      .text("level", level)
      .text("format", format)
      .file("directory", log.directory, directory);
  if (!section.ok()) {
    return section.done();
  }
  const auto parsed_level = log::parse_level(level);
  const auto parsed_format = log::parse_format(format);
  section.refuse(!parsed_level, "level", parsed_level ? "" : parsed_level.error().message)
      .refuse(!parsed_format, "format", parsed_format ? "" : parsed_format.error().message);
  log.level = parsed_level.value_or(log.level);
  log.format = parsed_format.value_or(log.format);
  return section.done();
}

/// Replaces a file name by its content.
Result<> inline_secret(std::string& value, std::string& file) {
  CEEMS_TRY(secret, os::read_secret(value, file));
  value = std::move(secret);
  file.clear();
  return {};
}

Result<> inline_tls(net::TlsOptions& options) {
  CEEMS_TRY(texts, net::TlsFiles(options).read());
  options = *texts;
  return {};
}

/// True if the quotes around the text that ends before `end` follow =~ or !~.
bool in_pattern(std::string_view text, std::size_t end) {
  const std::size_t quote = text.substr(0, end).find_last_of("\"'`");
  if (quote == std::string_view::npos) {
    return false;
  }
  const std::string_view before = trim(text.substr(0, quote));
  return before.ends_with("=~") || before.ends_with("!~");
}

}  // namespace

Result<> SeriesQuery::set_text(std::string_view text) {
  if (text.find("{{") == std::string_view::npos) {
    if (text.find("%s") == std::string_view::npos) {
      return fail(ErrorCode::kInvalidArgument,
                  "expected {{{{.UUIDs}}}} or %s instead of the unit ID");
    }
    text_ = text;
    return {};
  }
  CEEMS_TRY(parsed, tsdb::QueryTemplate::parse(text));
  tsdb::QueryVariables marked;
  marked.uuids = "\x01";
  if (parsed.render(marked).find(marked.uuids) == std::string::npos) {
    return fail(ErrorCode::kInvalidArgument, "expected {{{{.UUIDs}}}} instead of the unit IDs");
  }
  template_ = std::move(parsed);
  return {};
}

std::string SeriesQuery::render(const std::vector<std::string>& uuids,
                                tsdb::QueryVariables variables) const {
  const std::string pattern = tsdb::quote_text(tsdb::exact_regex(uuids));
  if (template_) {
    variables.uuids = pattern;
    return template_->render(variables);
  }
  const std::string plain =
      uuids.size() == 1 ? tsdb::quote_text(uuids.front()) : std::string(pattern);
  std::string query;
  std::string_view rest = text_;
  while (true) {
    const std::size_t mark = rest.find("%s");
    query += rest.substr(0, mark);
    if (mark == std::string_view::npos) {
      return query;
    }
    query += in_pattern(text_, text_.size() - rest.size() + mark) ? pattern : plain;
    rest.remove_prefix(mark + 2);
  }
}

Result<Config> parse_config(const Node& root, const std::string& directory) {
  Config config;
  Section top(root);
  top.only(config::kTopLevelKeys);
  const Node api = root["ceems_api_server"];
  Section server(api);
  server.only(config::kApiServerKeys)
      .text("cluster_id", config.cluster_id)
      .text("user_header_name", config.user_header)
      .also(read_web(api["web"], directory, config.api_url, config.api_client))
      .refuse(config.api_url.empty(), "web", "expected url, the URL of the API server")
      .refuse(config.user_header.empty(), "user_header_name", "expected the name of a header");
  CEEMS_TRY(top.also(server.done())
                .also(read_tsdb(root["tsdb"], directory, config))
                .also(read_logging(root["logging"], directory, config.log))
                .done());
  return config;
}

Result<> read_secret_files(net::ClientOptions& options) {
  Result<> done;
  const auto also = [&done](Result<> result) {
    if (done) {
      done = std::move(result);
    }
  };
  if (options.basic_auth) {
    also(inline_secret(options.basic_auth->username, options.basic_auth->username_file));
    also(inline_secret(options.basic_auth->password, options.basic_auth->password_file));
  }
  if (options.authorization) {
    also(
        inline_secret(options.authorization->credentials, options.authorization->credentials_file));
  }
  if (options.oauth2) {
    also(inline_secret(options.oauth2->client_secret, options.oauth2->client_secret_file));
    also(inline_tls(options.oauth2->tls));
  }
  for (auto& [name, header] : options.headers) {
    for (std::string& file : header.files) {
      also(inline_secret(header.secrets.emplace_back(), file));
    }
    header.files.clear();
  }
  also(inline_tls(options.tls));
  return done;
}

}  // namespace ceems::cacct
