// ceems_tool export
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_members.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "base/time/rfc3339.h"
#include "base/time/time_text.h"
#include "base/time/time_zone.h"
#include "export/all.h"
#include "export/anonymise.h"
#include "os/file.h"
#include "store/factory/open_database.h"
#include "tool/command.h"
#include "tool/connection.h"

namespace ceems::tool {
namespace {

using exporting::ExportedUnit;
using exporting::FormatSpec;
using exporting::Position;

/// Schedulers report an end with some delay. Units that ended later are left for the next run.
constexpr std::int64_t kSettledMs = kHourMs;
constexpr std::size_t kMaxFileBytes = 64UL * 1024;
constexpr std::size_t kChunk = 64UL * 1024;

std::string format_names() {
  std::string names;
  for (const FormatSpec& format : exporting::formats()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  return names;
}

std::string format_help() {
  std::string help = "The format: ";
  for (const FormatSpec& format : exporting::formats()) {
    help += fmt::format("{}{} ({})", help.ends_with(' ') ? "" : "; ", format.name, format.help);
  }
  return help + ".";
}

Result<const FormatSpec*> find_format(std::string_view name) {
  if (name.empty()) {
    return fail(ErrorCode::kInvalidArgument, "required flag --format not provided; formats are {}",
                format_names());
  }
  const auto formats = exporting::formats();
  const auto found = std::ranges::find(formats, name, &FormatSpec::name);
  if (found == formats.end()) {
    return fail(ErrorCode::kInvalidArgument, "--format: there is no '{}'; formats are {}",
                printable(name, 40), format_names());
  }
  return &*found;
}

/// A day or a moment in UTC, or one with an offset.
Result<std::int64_t> parse_moment(std::string_view flag, const std::string& text) {
  if (const auto moment = parse_rfc3339_ms(text)) {
    return *moment;
  }
  if (const auto local = complete_local(text)) {
    if (const auto moment = TimeZone().parse_local(*local)) {
      return *moment;
    }
  }
  return fail(ErrorCode::kInvalidArgument,
              "--{}: '{}' is neither a day such as 2026-11-01 nor a time as in RFC 3339", flag,
              printable(text, 60));
}

/// The last unit of an earlier run. Nothing if there is no such file yet.
Result<std::optional<Position>> read_state(const std::string& file) {
  auto text = os::read_regular_file(file, kMaxFileBytes);
  if (!text) {
    return text.error().code == ErrorCode::kNotFound ? Result<std::optional<Position>>(std::nullopt)
                                                     : fail(std::move(text).error());
  }
  const auto members = JsonMembers::parse(*text);
  const auto ended = members.number("ended_ts");
  Position position{.ended_ms = ended ? static_cast<std::int64_t>(*ended) : 0,
                    .key = {.cluster_id = std::string(members.text("cluster")),
                            .uuid = std::string(members.text("id")),
                            .started_at = std::string(members.text("started"))}};
  if (position.ended_ms <= 0 || position.key.uuid.empty()) {
    return fail(ErrorCode::kParse, "{}: not a file that an earlier export has written", file);
  }
  return position;
}

std::string state_text(const Position& position) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("ended_ts", position.ended_ms);
  json.member("cluster", position.key.cluster_id).member("id", position.key.uuid);
  json.member("started", position.key.started_at).end_object();
  return text + "\n";
}

class Export final : public Command {
 public:
  [[nodiscard]] std::string_view words() const override { return "export"; }
  [[nodiscard]] std::string_view help() const override {
    return "Print the units that ended in a period, for other programs. The database may be in "
           "use.";
  }
  void add_flags(config::FlagSet& flags) override {
    flags.add("format", format_, {.help = format_help(), .placeholder = "FORMAT"});
    flags.add("db", database_,
              {.help = "The database: the directory of ceems.db, or a URL without a password, "
                       "postgresql://user@host/database.",
               .placeholder = "DIR|URL"});
    flags.add("password-file", password_file_,
              {.help = "File with the password of the PostgreSQL user. PGPASSFILE works as well.",
               .placeholder = "FILE"});
    flags.add("from", from_,
              {.help = "Units that ended at this time or later: a day or time in UTC, or as in RFC "
                       "3339. The default is all.",
               .placeholder = "TIME"});
    flags.add("until", until_,
              {.help = "Units that ended before this time. The default is an hour ago, because "
                       "some ends are known late.",
               .placeholder = "TIME"});
    flags.add("cluster-id", cluster_, {.help = "Units of this cluster.", .placeholder = "ID"});
    flags.add("state", state_,
              {.help = "File with the last unit that was printed. If it exists, the export goes on "
                       "behind that unit.",
               .placeholder = "FILE"});
    flags.add("provider", provider_,
              {.help = "focus: who runs the site, as bills name it.", .placeholder = "NAME"});
    flags.add("currency", currency_,
              {.help = "focus: the currency of the price (ISO 4217).", .placeholder = "CODE"});
    flags.add("price-per-kwh", price_,
              {.help = "focus: the price of a kilowatt-hour.", .placeholder = "PRICE"});
    flags.add("anonymise", key_file_,
              {.help = "Replace users, groups and projects by hashes with the key in this file, "
                       "and leave out names, directories and hosts.",
               .placeholder = "FILE"});
  }

  Result<int> run(Console& console) override {
    CEEMS_TRY(spec, find_format(format_));
    CEEMS_TRY(options, read_options(*spec));
    CEEMS_TRY(selection, read_selection());
    std::optional<exporting::Anonymiser> anonymiser;
    if (!key_file_.empty()) {
      CEEMS_TRY_IN("--anonymise", key, os::read_regular_file(key_file_, kMaxFileBytes));
      CEEMS_TRY_IN("--anonymise", made, exporting::Anonymiser::create(trim(key)));
      anonymiser = std::move(made);
    }
    CEEMS_TRY(reader, open());
    const auto format = spec->create(options);
    std::string out;
    if (!selection.after) {
      format->begin(out);
    }
    std::int64_t count = 0;
    std::optional<Position> last;
    CEEMS_TRY(exporting::each_unit(*reader, selection, [&](ExportedUnit& unit) -> Result<> {
      last = Position{
          .ended_ms = unit.ended_ms,
          .key = {.cluster_id = unit.cluster, .uuid = unit.uuid, .started_at = unit.started}};
      if (anonymiser) {
        anonymiser->apply(unit);
      }
      format->add(unit, out);
      ++count;
      if (out.size() >= kChunk) {
        console.print(out);
        out.clear();
      }
      return {};
    }));
    format->end(out);
    console.print(out);
    if (last && !state_.empty()) {
      CEEMS_TRY_IN("--state", os::replace_file(state_, state_text(*last)));
    }
    console.say(fmt::format("{} unit{}", count, count == 1 ? "" : "s"));
    return 0;
  }

 private:
  [[nodiscard]] Result<exporting::FormatOptions> read_options(const FormatSpec& spec) const {
    const auto given = [](const std::string& text) { return !text.empty(); };
    const std::array flags{given(provider_), given(currency_), given(price_)};
    if (!spec.needs_price) {
      return std::ranges::find(flags, true) == flags.end()
                 ? Result<exporting::FormatOptions>(exporting::FormatOptions{})
                 : fail(ErrorCode::kInvalidArgument, "--format {} has no prices", spec.name);
    }
    const auto price = parse_double(price_);
    const bool is_currency = currency_.size() == 3 && std::ranges::all_of(currency_, [](char c) {
                               return c >= 'A' && c <= 'Z';
                             });
    if (!given(provider_) || !is_currency || !price || !(*price >= 0) || std::isinf(*price)) {
      return fail(ErrorCode::kInvalidArgument,
                  "--format {} needs --provider, --currency (such as EUR) and --price-per-kwh",
                  spec.name);
    }
    return exporting::FormatOptions{
        .provider = provider_, .currency = currency_, .price_per_kwh = *price};
  }

  [[nodiscard]] Result<exporting::Selection> read_selection() const {
    exporting::Selection selection{.cluster = cluster_};
    selection.ended = {.from_ms = 1, .to_ms = real_clock().now_ms() - kSettledMs};
    if (!from_.empty()) {
      CEEMS_TRY(from, parse_moment("from", from_));
      selection.ended.from_ms = from;
    }
    if (!until_.empty()) {
      CEEMS_TRY(until, parse_moment("until", until_));
      selection.ended.to_ms = until - 1;
    }
    if (selection.ended.from_ms > selection.ended.to_ms) {
      return fail(ErrorCode::kInvalidArgument, "--from is not before --until");
    }
    if (!state_.empty()) {
      CEEMS_TRY_IN("--state", after, read_state(state_));
      selection.after = std::move(after);
    }
    return selection;
  }

  [[nodiscard]] Result<std::shared_ptr<store::Reader>> open() const {
    if (database_.empty()) {
      return fail(ErrorCode::kInvalidArgument, "required flag --db not provided");
    }
    CEEMS_TRY_IN("--db", options, database_options(database_, password_file_, "UTC"));
    CEEMS_TRY_IN("--db", reader, store::open_reader(options));
    return reader;
  }

  std::string format_, database_, password_file_, from_, until_, cluster_, state_, key_file_;
  std::string provider_, currency_, price_;
};

}  // namespace

std::unique_ptr<Command> export_command() {
  return std::make_unique<Export>();
}

}  // namespace ceems::tool
