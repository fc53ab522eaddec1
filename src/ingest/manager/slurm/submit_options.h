#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ceems::ingest {

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

 private:
  void add_words(std::string_view rest);

  bool first_ = true;
  bool done_ = false;
  bool certain_ = true;
  bool several_ = false;
  std::size_t bytes_ = 0;
  std::vector<std::string> words_;
};

}  // namespace ceems::ingest
