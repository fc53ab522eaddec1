#include "advice/rule.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "advice/catalogue.h"
#include "advice/rule_files.h"
#include "advice/template.h"
#include "base/check.h"
#include "base/strings.h"
#include "config/section.h"
#include "config/spelling.h"

namespace ceems::advice {
namespace {

// docs/report.md says what each means; A test compares the page with this list.
constexpr std::array<std::string_view, 76> kFacts{
    "alloc.cpus",
    "alloc.cpus_per_node",
    "alloc.exclusive",
    "alloc.gpus",
    "alloc.mem_per_cpu",
    "alloc.nodes",
    "coverage",
    "cpu.busy_nodes",
    "cpu.eff",
    "cpu.unused_nodes",
    "cpu.used",
    "cpu.used_max",
    "family.cpu_median",
    "family.gpu_median",
    "family.mem_max",
    "family.mem_p95",
    "family.n",
    "family.oom",
    "family.runtime_max",
    "family.runtime_p95",
    "flavor.mem",
    "flavor.name",
    "flavor.now",
    "flavor.server",
    "flavor.vcpus",
    "gpu.busy",
    "gpu.far",
    "gpu.mem",
    "gpu.mem_peak_max",
    "gpu.per_node",
    "gpu.sm",
    "gpu.unused",
    "gpu.unused_mem_peak",
    "gpu.unused_per_node",
    "idle.kwh",
    "idle.kwh_gpu",
    "idle.seconds",
    "interactive",
    "io.bytes_per_s",
    "k8s.gpu_resource",
    "limit",
    "mem.alloc_node",
    "mem.fail_count",
    "mem.peak_node_max",
    "mem.peak_sum",
    "node.cpus",
    "node.mem",
    "node.mem_per_cpu",
    "not_used.kwh",
    "not_used.kwh_gpu",
    "pbs.gpus",
    "pbs.mem",
    "pbs.more",
    "qos",
    "queue.cpus",
    "queue.limit",
    "queue.mem",
    "queue.mem_cpu",
    "queue.min_nodes",
    "req.cpus",
    "req.mem",
    "runtime",
    "slurm.by_cpus",
    "slurm.by_tasks",
    "slurm.by_tasks_per_node",
    "slurm.gpus_asked",
    "slurm.gpus_by",
    "slurm.gpus_more",
    "slurm.gpus_option",
    "slurm.mem",
    "slurm.tasks",
    "slurm.time",
    "state",
    "threads.busy",
    "threads.cpus",
    "threads.reserved",
};
static_assert(std::ranges::is_sorted(kFacts));

constexpr std::string_view kLimit = "limit.";
constexpr std::size_t kMaxRules = 200;
constexpr std::size_t kMaxLets = 16;

bool is_fact(std::string_view name) {
  return std::ranges::binary_search(kFacts, name);
}

bool is_word(std::string_view text, std::string_view more) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  });
}

/// The keys of a rule.
std::vector<std::string_view> known_keys(bool core) {
  std::vector<std::string_view> keys{"id",        "enabled",  "basis",      "needs", "limits",
                                     "let",       "when",     "unless",     "clear", "important",
                                     "severity",  "alone",    "instead_of", "say",   "text",
                                     "saves_kwh", "sessions", "suggests"};
  if (core) {
    keys.insert(keys.end(), kCoreKeys.begin(), kCoreKeys.end());
  }
  for (const Dialect& dialect : kDialects) {
    keys.insert(keys.end(), {dialect.key, dialect.was_key});
  }
  return keys;
}

/// Reads one rule over its earlier definition.
class RuleReader {
 public:
  RuleReader(const config::Node& node, Rule rule) : node_(node), rule_(std::move(rule)) {}

  Result<Rule> read() {
    config::Section section(node_);
    section.only(known_keys(core_));
    section.boolean("enabled", rule_.enabled)
        .list("needs", rule_.needs)
        .boolean("alone", rule_.alone)
        .boolean("sessions", rule_.sessions)
        .list("instead_of", rule_.instead_of)
        .text("say", rule_.say);
    for (std::size_t i = 0; i < kDialects.size(); ++i) {
      section.list(kDialects[i].key, rule_.lines[i].type)
          .list(kDialects[i].was_key, rule_.lines[i].was);
    }
    choose(section, "basis", {"measured", "accounting", "node-lost"}, rule_.basis);
    choose(section, "severity", {"good", "info", "suggest", "important"}, rule_.severity);
    choose(section, "suggests",
           {"nothing", "less cpus", "less memory", "less gpus", "less nodes", "less time",
            "more memory", "more time"},
           rule_.suggests);
    if (section.ok()) {
      section.also(read_limits());
    }
    if (section.ok()) {
      section.also(read_lets());
    }
    if (section.ok()) {
      section.also(read_texts());
    }
    read_expression(section, "when", [this](Expression e) { rule_.when = std::move(e); });
    read_expression(section, "unless", [this](Expression e) { rule_.unless = std::move(e); });
    read_expression(section, "clear", [this](Expression e) { rule_.clear = std::move(e); });
    read_expression(section, "important", [this](Expression e) { rule_.important = std::move(e); });
    read_expression(section, "saves_kwh", [this](Expression e) { rule_.saves_kwh = std::move(e); });
    if (section.ok()) {
      section.also(check());
    }
    return section.ok() ? Result<Rule>(std::move(rule_)) : fail(section.done().error());
  }

  /// The rule was known before this file.
  void set_known() { known_ = true; }
  /// The program carries the rule.
  void set_core() { core_ = true; }

 private:
  template <typename Enum>
  static void choose(config::Section& section,
                     std::string_view key,
                     std::initializer_list<std::string_view> words,
                     Enum& target) {
    std::string word;
    section.text(key, word);
    if (word.empty()) {
      return;
    }
    const auto* const found = std::ranges::find(words, word);
    section.refuse(
        found == words.end(), key,
        fmt::format("expected one of {}; got '{}'", fmt::join(words, ", "), printable(word, 40)));
    if (found != words.end()) {
      target = static_cast<Enum>(found - words.begin());
    }
  }

  Result<> read_limits() {
    const config::Node limits = node_["limits"];
    if (limits.present() && !limits.is_map()) {
      return fail(limits.error("expected a mapping of numbers"));
    }
    for (const auto& [name, value] : limits.entries()) {
      CEEMS_TRY(number, value.as_double());
      // A site that misspells the limit of a known rule would change nothing.
      if (known_ && !rule_.limits.contains(name)) {
        return fail(value.error(fmt::format("the rule has no limit '{}'", printable(name, 40))));
      }
      rule_.limits[name] = number;
    }
    return {};
  }

  Result<> read_lets() {
    const config::Node lets = node_["let"];
    if (!lets.present()) {
      return {};
    }
    if (!lets.is_map() || lets.entries().size() > kMaxLets) {
      return fail(lets.error(fmt::format("expected a mapping of at most {} names", kMaxLets)));
    }
    rule_.let.clear();
    for (const auto& [name, value] : lets.entries()) {
      if (!is_word(name, "_") || is_fact(name)) {
        return fail(value.error("expected a name of small letters that is not that of a fact"));
      }
      CEEMS_TRY(expression, compile(value));
      rule_.let.emplace_back(name, std::move(expression));
    }
    return {};
  }

  Result<> read_texts() {
    const config::Node texts = node_["text"];
    if (texts.present() && !texts.is_map()) {
      return fail(texts.error("expected a mapping from languages to texts"));
    }
    for (const auto& [language, value] : texts.entries()) {
      if (std::ranges::find(kLanguages, language) == kLanguages.end()) {
        return fail(value.error(
            fmt::format("expected one of the languages {}", fmt::join(kLanguages, ", "))));
      }
      CEEMS_TRY(text, value.as_string());
      rule_.texts[language] = std::move(text);
    }
    return {};
  }

  [[nodiscard]] bool knows(std::string_view name) const {
    return is_fact(name) ||
           (name.starts_with(kLimit) && rule_.limits.contains(name.substr(kLimit.size()))) ||
           std::ranges::find(rule_.let, name, &Named::first) != rule_.let.end();
  }
  [[nodiscard]] std::string unknown(std::string_view name) const {
    std::vector<std::string> all(kFacts.begin(), kFacts.end());
    for (const auto& [limit, value] : rule_.limits) {
      all.push_back(std::string(kLimit) + limit);
    }
    const std::vector<std::string_view> views(all.begin(), all.end());
    const std::string_view close = config::nearest(name, views);
    return fmt::format("unknown name '{}'{}", printable(name, 40),
                       close.empty() ? "" : fmt::format(", did you mean '{}'?", close));
  }

  /// Compiles the text of a node, whose names must be known.
  [[nodiscard]] Result<Expression> compile(const config::Node& node) const {
    CEEMS_TRY(text, node.as_string());
    auto expression = Expression::compile(text);
    if (!expression) {
      return fail(node.error(expression.error().message));
    }
    for (const std::string& name : expression->names()) {
      if (!knows(name)) {
        return fail(node.error(unknown(name)));
      }
    }
    return expression;
  }

  template <typename Store>
  void read_expression(config::Section& section, std::string_view key, const Store& store) {
    const config::Node node = node_[key];
    if (!section.ok() || !node.present()) {
      return;
    }
    auto expression = compile(node);
    if (expression) {
      store(std::move(*expression));
    } else {
      section.also(fail(std::move(expression).error()));
    }
  }

  /// Without `words`, a number that only chooses between two words may be unknown.
  [[nodiscard]] Result<> check_template(std::string_view key,
                                        std::string_view text,
                                        bool words = true) const {
    const config::Node at = node_[key].present() ? node_[key] : node_;
    const auto found = placeholders(text);
    if (!found) {
      return fail(at.error(found.error().message));
    }
    for (const Placeholder& placeholder : *found) {
      if (!knows(placeholder.name) && (words || !placeholder.words)) {
        return fail(at.error(unknown(placeholder.name)));
      }
    }
    return {};
  }

  [[nodiscard]] Result<> check() const {
    for (const std::string& name : rule_.needs) {
      if (!is_fact(name)) {
        return fail(node_["needs"].error(unknown(name)));
      }
    }
    if (rule_.when.size() == 0) {
      return fail(node_.error("a rule needs `when`"));
    }
    const bool has_text = rule_.texts.contains(kLanguages.front()) ||
                          catalogue(kLanguages.front()).advice.contains(rule_.say);
    if (!has_text) {
      return fail(node_.error("a rule needs `text` with the language en"));
    }
    for (const auto& [language, text] : rule_.texts) {
      CEEMS_TRY(check_template("text", text));
      if (const std::string why = tone_of(language, text); !why.empty()) {
        return fail(node_["text"].error(fmt::format("the text in {} is {}", language, why)));
      }
    }
    for (const std::string_view language : kLanguages) {
      const auto& texts = catalogue(language).advice;
      if (const auto text = texts.find(rule_.say); text != texts.end()) {
        CEEMS_TRY(check_template("say", text->second, false));
      }
    }
    for (std::size_t i = 0; i < kDialects.size(); ++i) {
      for (const auto& [key, lines] : {std::pair(kDialects[i].key, &rule_.lines[i].type),
                                       {kDialects[i].was_key, &rule_.lines[i].was}}) {
        // A file that replaces `let` need not know the lines of each manager: those that name what
        // is gone are left out, as with any unknown value.
        if (!node_[key].present()) {
          continue;
        }
        for (const std::string& line : *lines) {
          CEEMS_TRY(check_template(key, line));
        }
      }
    }
    return {};
  }

  config::Node node_;
  Rule rule_;
  bool known_ = false;
  bool core_ = false;
};

Result<> read_rule(const config::Node& node,
                   RuleSet& set,
                   std::set<std::string>& seen,
                   bool core = false) {
  std::string id;
  config::Section section(node);
  section.text("id", id).refuse(!is_word(id, "-_"), "id",
                                "expected an id of small letters, digits and hyphens");
  section.refuse(section.ok() && !seen.insert(id).second, "id", "the file names the rule twice");
  section.refuse(set.rules.size() >= kMaxRules, "id",
                 fmt::format("there are more than {} rules", kMaxRules));
  if (!section.ok()) {
    return section.done();
  }
  const auto known = std::ranges::find(set.rules, id, &Rule::id);
  RuleReader reader(node, known == set.rules.end() ? Rule{.id = id, .say = id} : *known);
  if (known != set.rules.end()) {
    reader.set_known();
  }
  if (core) {
    reader.set_core();
  }
  CEEMS_TRY(rule, reader.read());
  if (known != set.rules.end()) {
    *known = std::move(rule);
  } else {
    set.rules.push_back(std::move(rule));
  }
  return {};
}

bool is_session_pattern(std::string_view entry) {
  constexpr std::array<std::string_view, 4> kKinds{"name", "partition", "qos", "submit"};
  const std::string_view kind = take_until(entry, '=');
  return !entry.empty() && std::ranges::find(kKinds, kind) != kKinds.end();
}

Result<RuleSet> read_rules(const config::Node& document, RuleSet base) {
  std::set<std::string> seen;
  config::Section section(document);
  section.only({"rules", "ignore_qos", "sessions"})
      .list("ignore_qos", base.ignore_qos)
      .list("sessions", base.sessions)
      .refuse(!std::ranges::all_of(base.sessions, is_session_pattern), "sessions",
              "expected entries that begin with name=, partition=, qos= or submit=")
      .each("rules", [&](const config::Node& node) { return read_rule(node, base, seen); });
  if (!section.ok()) {
    return fail(section.done().error());
  }
  return base;
}

}  // namespace

const Rule* RuleSet::find(std::string_view id) const {
  const auto found = std::ranges::find(rules, id, &Rule::id);
  return found == rules.end() ? nullptr : &*found;
}

std::span<const std::string_view> fact_names() {
  return kFacts;
}

Result<RuleSet> add_rules(RuleSet base, std::string_view text, std::string_view file) {
  const auto document = config::parse_yaml(text, file);
  return document ? read_rules(*document, std::move(base)) : fail(document.error());
}

Result<RuleSet> add_carried_rule(RuleSet base, const config::Node& document) {
  std::set<std::string> seen;
  auto read = read_rule(document, base, seen, true);
  return read ? Result<RuleSet>(std::move(base)) : fail(std::move(read).error());
}

const RuleSet& core_rules() {
  static const RuleSet kRules = [] {
    // How people start sessions: the names that batchspawner, JupyterHub and Open OnDemand give.
    // The latter may have the name of the portal in front, and other characters for slashes.
    RuleSet rules{
        .rules = {},
        .ignore_qos = {"debug", "test"},
        .sessions = {"submit=salloc", "submit=srun --pty", "name=interactive",
                     "name=*sys/dashboard/*", "name=*dev/dashboard/*", "name=*sys-dashboard-*",
                     "name=*dev-dashboard-*", "name=*/bc_*", "name=spawner-*", "name=batchspawner*",
                     "name=jupyterhub*", "name=ondemand*"}};
    std::set<std::string> seen;
    for (const config::Node& document : core_documents()) {
      CEEMS_CHECK(read_rule(document, rules, seen, true).has_value());
    }
    // A site that changes `say` of such a rule gets the text that it names.
    for (Rule& rule : rules.rules) {
      rule.texts.clear();
    }
    return rules;
  }();
  return kRules;
}

Result<RuleSet> load_rules(const std::string& directory) {
  RuleSet rules = core_rules();
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".yml") {
      files.push_back(entry->path().string());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail(ErrorCode::kUnavailable, "cannot read the directory {}: {}", directory,
                error.message());
  }
  std::ranges::sort(files);
  for (const std::string& file : files) {
    CEEMS_TRY(document, config::load_yaml(file));
    CEEMS_TRY(more, read_rules(document, std::move(rules)));
    rules = std::move(more);
  }
  return rules;
}

}  // namespace ceems::advice
