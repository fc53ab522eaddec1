#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ceems::jobscript {

/// The longest text() of directives, in bytes.
inline constexpr std::size_t kMaxDirectivesText = 1024;

// The options with which a job of SLURM was asked for (sbatch(1)). Pure functions. Users write
// commands and scripts, so a value may be any text.

/// The options of a command by their long name, with the last value of each.
struct SubmitOptions {
  std::string program = {};
  std::set<std::pair<std::string, std::string>, std::less<>> all = {};
  bool script = false;   ///< of sbatch, whose directives are not known
  bool ended = false;    ///< the end of the options was seen
  bool several = false;  ///< components of a heterogeneous job

  [[nodiscard]] std::optional<std::string_view> value(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return value(name).has_value(); }
  void set(std::string_view name, std::string_view text);
};

/// Reads the options before the script or program; what follows is its own. `directives` is the
/// text() of the script, if it is known: the command wins over it.
SubmitOptions read_submit_options(std::string_view line, std::string_view directives = {});

/// The same for words that a shell has taken apart, without the name of the program. `script` is
/// set to the number of the word that names the script; to the number of words if there is none.
SubmitOptions read_submit_words(std::span<const std::string> words, std::size_t& script);

/// Takes the next word off the front of a directive, with its quotes and backslashes resolved.
/// Nothing at the end; with `comments`, a hash ends the directive, as for sbatch. `open` is set if
/// a quote is not closed.
std::optional<std::string> take_directive_word(std::string_view& rest, bool comments, bool& open);

/// Whether a value has only what amounts and names of resources consist of: "gpu:a100:2,ssd:1".
bool is_plain_value(std::string_view value);

/// Whether the option asks for resources. Only of these a script's text() keeps the value.
bool asks_for_resources(std::string_view name);

/// Reads the directives of a batch script as sbatch does: in the lines before the first command,
/// also in quotes. Keeps options of memory, CPUs, tasks, GPUs, nodes and time, and of these only
/// values of digits and names of resources.
class ScriptDirectives {
 public:
  /// Adds the next line, without its newline.
  void add_line(std::string_view line);
  /// The options as --name=value, separated by blanks; "--" if there are none; ":" for components
  /// of a heterogeneous job. Nothing if the script is not one that sbatch takes, or if what it asks
  /// for is not certain, as with directives of other managers, which sbatch reads, too.
  [[nodiscard]] std::optional<std::string> text() const;
  /// All options with their values, certain or not.
  [[nodiscard]] SubmitOptions options() const;

 private:
  void add_words(std::string_view rest);

  /// Reads the options, up to a word that is none, which it returns.
  std::string_view read(SubmitOptions& options, bool& all) const;

  bool first_ = true;
  bool done_ = false;
  bool certain_ = true;
  bool several_ = false;
  std::size_t bytes_ = 0;
  std::vector<std::string> words_;
};

}  // namespace ceems::jobscript
