#include "exporter/profile/symbol/names/symbols.h"

#include <elf.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "exporter/profile/symbol/compiled_binary_test_support.h"
#include "exporter/profile/symbol/process_maps.h"

namespace ceems::exporter::profile {
namespace {

Result<BinaryFile> no_file(const std::string& path) {
  return fail(ErrorCode::kNotFound, "{}", path);
}

ElfFile elf_of(const std::string& path) {
  return ElfFile::read(BinaryFile::open(path).value()).value();
}

SymbolTable symbols_of(const std::string& path, const FileOpener& open = no_file) {
  return read_symbols(elf_of(path), path, open);
}

/// The name for an address of this process.
std::string name_of(std::uint64_t address) {
  const auto maps = read_maps({}, ::getpid()).value();
  const Mapping* mapping = maps.find(address);
  if (mapping == nullptr) {
    return "no mapping";
  }
  const ElfFile elf = elf_of(mapping->path);
  const auto code = elf.code_address(mapping->offset + (address - mapping->start));
  const auto symbols = read_symbols(elf, mapping->path, no_file);
  return std::string(
      symbols.find(static_cast<std::uint32_t>(code.value_or(0) - elf.base())).value_or("nothing"));
}

template <class Function>
std::uint64_t address_of_function(Function* function) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as a number
  return reinterpret_cast<std::uint64_t>(function);
}

TEST(Symbols, NameFunctionsOfThisProcess) {
  EXPECT_EQ(name_of(address_of_function(&parse_maps)),
            "_ZN5ceems8exporter7profile10parse_mapsESt17basic_string_viewIcSt11char_traitsIcEE");
  EXPECT_EQ(name_of(address_of_function(&parse_maps) + 7),
            "_ZN5ceems8exporter7profile10parse_mapsESt17basic_string_viewIcSt11char_traitsIcEE");
  EXPECT_EQ(name_of(address_of_function(&::qsort)), "qsort");
  EXPECT_EQ(name_of(address_of_function(&::getpid)),
            "getpid");  // not __getpid, which is the same function
}

/// The addresses that nm lists, by name.
std::map<std::string, std::uint64_t> addresses(const std::string& path) {
  std::map<std::string, std::uint64_t> found;
  const auto done =
      os::real_runner().run({.path = "/usr/bin/nm", .arguments = {path}, .environment = {}});
  EXPECT_TRUE(done) << done.error().message;
  const std::string listing = done ? done->output : std::string{};
  for (std::string_view line : split(listing, '\n')) {
    const std::string address(take_word(line));
    const std::string_view type = take_word(line);
    if (type == "T" || type == "t" || type == "W") {
      found.emplace(trim(line), std::strtoull(address.c_str(), nullptr, 16));
    }
  }
  return found;
}

constexpr std::string_view kSource = R"(
  #include <cstdio>
  namespace work {
  __attribute__((noinline)) static int hidden(int n) { return std::printf("%d", n); }
  __attribute__((noinline)) int open(int n) { return hidden(n) + hidden(n + 1); }
  }
  extern "C" int plain(int n) { return work::open(n); }
  extern "C" int __plain_alias(int) __attribute__((alias("plain")));
  int main(int argc, char**) { return plain(argc); }
)";

/// A program, and where its functions are.
class CompiledProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* tool : {"nm", "objcopy", "strip"}) {
      if (!program(tool)) {
        GTEST_SKIP() << "requires " << tool << " (binutils)";
      }
    }
    path_ = compiled(directory_, "g++", "a.cc", kSource, {"-O1", "-Wl,--build-id"});
    if (path_.empty()) {
      GTEST_SKIP() << "requires g++";
    }
    addresses_ = addresses(path_);
    base_ = elf_of(path_).base();
  }

  void tool(const std::string& name, const std::vector<std::string>& arguments) {
    ASSERT_TRUE(run_tool(directory_, *program(name), arguments));
  }

  /// Expects the names of all functions.
  void expect_all(const SymbolTable& symbols) {
    for (const std::string name : {"main", "plain", "_ZN4work4openEi", "_ZN4workL6hiddenEi"}) {
      ASSERT_TRUE(addresses_.contains(name)) << name;
      const auto pc = static_cast<std::uint32_t>(addresses_[name] - base_);
      EXPECT_EQ(symbols.find(pc), name);
      EXPECT_EQ(symbols.find(pc + 1), name);
    }
  }

  void strip() { tool("strip", {"-s", path_}); }

  /// Opens files below the directory as if it were the root.
  FileOpener opener() {
    return [this](const std::string& path) {
      opened_.push_back(path);
      return BinaryFile::open(directory_.path().string() + path);
    };
  }

  testing::TempDir directory_;
  std::string path_;
  std::map<std::string, std::uint64_t> addresses_;
  std::uint64_t base_ = 0;
  std::vector<std::string> opened_;
};

TEST_F(CompiledProgram, IsNamedByItsOwnTable) {
  const auto symbols = symbols_of(path_);
  expect_all(symbols);
  EXPECT_EQ(symbols.find(0), std::nullopt);
  EXPECT_EQ(symbols.dropped(), 0U);
  // A label without a type and a size.
  EXPECT_EQ(symbols.find(static_cast<std::uint32_t>(addresses_["_start"] - base_) + 4), "_start");
}

TEST_F(CompiledProgram, IsNamelessWhenStripped) {
  strip();
  EXPECT_EQ(symbols_of(path_).find(static_cast<std::uint32_t>(addresses_["main"] - base_)),
            std::nullopt);
}

TEST_F(CompiledProgram, IsNamedByADebugFileOfItsBuildId) {
  const std::string id = elf_of(path_).build_id();
  ASSERT_EQ(id.size(), 40U);
  const std::string debug = directory_.write(
      "usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug", "");
  tool("objcopy", {"--only-keep-debug", path_, debug});
  strip();
  expect_all(symbols_of(path_, opener()));
  // Of another build it is not used.
  tool("objcopy", {"--remove-section=.note.gnu.build-id", debug});
  EXPECT_EQ(
      symbols_of(path_, opener()).find(static_cast<std::uint32_t>(addresses_["main"] - base_)),
      std::nullopt);
}

TEST_F(CompiledProgram, IsNamedByADebugFileOfItsLink) {
  tool("objcopy", {"--remove-section=.note.gnu.build-id", path_});
  const std::string debug = directory_.write("opt/bin/.debug/program.debug", "");
  tool("objcopy", {"--only-keep-debug", path_, debug});
  strip();
  tool("objcopy", {"--add-gnu-debuglink=" + debug, path_});
  EXPECT_EQ(elf_of(path_).debug_link()->name, "program.debug");
  expect_all(read_symbols(elf_of(path_), "/opt/bin/program", opener()));
  EXPECT_THAT(opened_,
              ::testing::ElementsAre("/opt/bin/program.debug", "/opt/bin/.debug/program.debug"));
  opened_.clear();
  // One with another checksum is not used.
  tool("objcopy", {"--remove-section=.comment", debug});
  EXPECT_EQ(read_symbols(elf_of(path_), "/opt/bin/program", opener())
                .find(static_cast<std::uint32_t>(addresses_["main"] - base_)),
            std::nullopt);
  EXPECT_EQ(opened_.back(), "/usr/lib/debug/opt/bin/program.debug");
}

TEST_F(CompiledProgram, IsNamedByItsMiniDebugInfo) {
  const auto xz = program("xz");
  if (!xz) {
    GTEST_SKIP() << "requires xz (xz-utils)";
  }
  const std::string mini = directory_.path() / "mini";
  tool("objcopy",
       {"-S", "--keep-symbol=main", "--keep-symbol=plain", "--keep-symbol=_ZN4work4openEi",
        "--keep-symbol=_ZN4workL6hiddenEi", path_, mini});
  ASSERT_TRUE(run_tool(directory_, *xz, {mini}));
  strip();
  tool("objcopy", {"--add-section=.gnu_debugdata=" + mini + ".xz", path_});
  expect_all(symbols_of(path_));
  // Malformed: not an xz stream.
  const std::string bad = directory_.write("bad", std::string(4000, 'x'));
  tool("objcopy", {"--update-section=.gnu_debugdata=" + bad, path_});
  EXPECT_EQ(mini_debug_info(elf_of(path_)).error().code, ErrorCode::kParse);
}

class GoProgram : public ::testing::TestWithParam<const char*> {};

TEST_P(GoProgram, IsNamedByItsLineTable) {
  const testing::TempDir directory;
  const std::string path = compiled_go(directory, R"(package main
    //go:noinline
    func busy(n int) int { s := 0; for i := 0; i < n; i++ { s += i * n }; return s }
    type shape struct{ n int }
    //go:noinline
    func (s *shape) area() int { return busy(s.n) }
    func main() { println((&shape{n: 3}).area()) }
  )",
                                       GetParam());
  if (path.empty()) {
    GTEST_SKIP() << "requires go (golang-go)";
  }
  const ElfFile elf = elf_of(path);
  SymbolTableBuilder builder;
  add_go_symbols(elf, builder);
  const SymbolTable symbols = builder.finish();
  EXPECT_GT(symbols.size(), 900U);
  if (elf.find_section(".symtab") == nullptr) {
    // The names must be there; their places are compared in the program with symbols.
    std::size_t named = 0;
    const Section* text = elf.find_section(".text");
    for (std::uint64_t at = text->address; at < text->address + text->size; at += 16) {
      const auto name = symbols.find(static_cast<std::uint32_t>(at - elf.base()));
      named += name == "main.busy" || name == "main.(*shape).area" ? 1 : 0;
    }
    EXPECT_GT(named, 4U);
    return;
  }
  const auto known = addresses(path);
  std::size_t compared = 0;
  for (const auto& [name, address] : known) {
    if (name.starts_with("main.") || name.starts_with("runtime.malloc")) {
      EXPECT_EQ(symbols.find(static_cast<std::uint32_t>(address - elf.base())), name);
      ++compared;
    }
  }
  EXPECT_GT(compared, 3U);
}

INSTANTIATE_TEST_SUITE_P(Symbols, GoProgram, ::testing::Values("", "-s -w"));

// --- Line tables of other Go versions ----------------------------------------------------------

std::string elf_bytes(std::uint64_t value, unsigned bytes) {
  std::string out;
  for (unsigned i = 0; i < bytes; ++i) {
    out += static_cast<char>(i < 8 ? value >> (8 * i) : 0);
  }
  return out;
}

/// A minimal program at 0x1000 with the sections .text and .gopclntab.
ElfFile go_program(const std::string& table) {
  const std::string names = std::string("\0.text\0.gopclntab\0.shstrtab\0", 28);
  constexpr std::uint64_t kTable = 64 + 56;
  const std::uint64_t sections = kTable + table.size() + names.size();
  std::string elf = std::string(ELFMAG) + "\x02\x01\x01" + std::string(9, '\0');
  elf += elf_bytes(ET_EXEC, 2) + elf_bytes(EM_X86_64, 2) + elf_bytes(1, 4);
  elf += elf_bytes(0, 8) + elf_bytes(64, 8) + elf_bytes(sections, 8);
  elf += elf_bytes(0, 4) + elf_bytes(64, 2) + elf_bytes(56, 2) + elf_bytes(1, 2);
  elf += elf_bytes(64, 2) + elf_bytes(4, 2) + elf_bytes(3, 2);
  elf += elf_bytes(PT_LOAD, 4) + elf_bytes(PF_X, 4) + elf_bytes(0, 8);
  elf += elf_bytes(0x1000, 8) + elf_bytes(0x1000, 8) + elf_bytes(0x3000, 8);
  elf += elf_bytes(0x3000, 8) + elf_bytes(0, 8);
  elf += table + names;
  const auto section = [](std::uint32_t name, std::uint32_t type, std::uint64_t address,
                          std::uint64_t offset, std::uint64_t size) {
    return elf_bytes(name, 4) + elf_bytes(type, 4) + elf_bytes(0, 8) + elf_bytes(address, 8) +
           elf_bytes(offset, 8) + elf_bytes(size, 8) + elf_bytes(0, 24);
  };
  elf += std::string(64, '\0');
  elf += section(1, SHT_PROGBITS, 0x2000, 0, 0x1000);
  elf += section(7, SHT_PROGBITS, 0, kTable, table.size());
  elf += section(18, SHT_STRTAB, 0, kTable + table.size(), names.size());
  return ElfFile::read(BinaryFile::of_bytes(elf)).value();
}

/// The names at the first bytes of two functions, at 0x1000 and 0x1040 from the lowest address.
std::vector<std::string> go_names(const std::string& table) {
  SymbolTableBuilder builder;
  add_go_symbols(go_program(table), builder);
  const SymbolTable symbols = builder.finish();
  return {std::string(symbols.find(0x1000).value_or("-")),
          std::string(symbols.find(0x1040).value_or("-")),
          std::string(symbols.find(0x1080).value_or("-"))};
}

const std::string kNames = std::string("main.a\0main.b", 13) + '\0';

std::string table_of_go12() {
  std::string table = elf_bytes(0xFFFFFFFB, 4) + std::string("\0\0\1\x08", 4);
  table += elf_bytes(2, 8);
  const std::uint64_t details = table.size() + 16 + 16 + 8;
  table += elf_bytes(0x2000, 8) + elf_bytes(details, 8);
  table += elf_bytes(0x2040, 8) + elf_bytes(details + 12, 8) + elf_bytes(0x2080, 8);
  table += elf_bytes(0x2000, 8) + elf_bytes(details + 24, 4);
  table += elf_bytes(0x2040, 8) + elf_bytes(details + 31, 4);
  return table + kNames;
}

std::string table_of_go116() {
  std::string table = elf_bytes(0xFFFFFFFA, 4) + std::string("\0\0\1\x08", 4);
  const std::uint64_t names = 64;
  table += elf_bytes(2, 8) + elf_bytes(0, 8) + elf_bytes(names, 8);
  table += elf_bytes(0, 24) + elf_bytes(names + kNames.size(), 8) + kNames;
  table += elf_bytes(0x2000, 8) + elf_bytes(40, 8);
  table += elf_bytes(0x2040, 8) + elf_bytes(52, 8) + elf_bytes(0x2080, 8);
  table += elf_bytes(0x2000, 8) + elf_bytes(0, 4);
  return table + elf_bytes(0x2040, 8) + elf_bytes(7, 4);
}

std::string table_of_go118(std::uint32_t magic, std::uint64_t text) {
  std::string table = elf_bytes(magic, 4) + std::string("\0\0\1\x08", 4);
  const std::uint64_t names = 72;
  table += elf_bytes(2, 8) + elf_bytes(0, 8) + elf_bytes(text, 8);
  table += elf_bytes(names, 8) + elf_bytes(0, 24);
  table += elf_bytes(names + kNames.size(), 8) + kNames;
  table += elf_bytes(0, 4) + elf_bytes(20, 4) + elf_bytes(0x40, 4) + elf_bytes(28, 4) +
           elf_bytes(0x80, 4);
  return table + elf_bytes(0, 4) + elf_bytes(0, 4) + elf_bytes(0x40, 4) + elf_bytes(7, 4);
}

TEST(GoSymbols, AreReadInEachLayout) {
  const auto expected = ::testing::ElementsAre("main.a", "main.b", "-");
  EXPECT_THAT(go_names(table_of_go12()), expected);
  EXPECT_THAT(go_names(table_of_go116()), expected);
  EXPECT_THAT(go_names(table_of_go118(0xFFFFFFF0, 0x2000)), expected);
  EXPECT_THAT(go_names(table_of_go118(0xFFFFFFF1, 0x2000)), expected);
  EXPECT_THAT(go_names(table_of_go118(0xFFFFFFF1, 0)), expected);  // position-independent
}

TEST(GoSymbols, OfMalformedTablesAreLeftOut) {
  const auto nothing = ::testing::ElementsAre("-", "-", "-");
  EXPECT_THAT(go_names(""), nothing);
  EXPECT_THAT(go_names(table_of_go118(0xFFFFFFF2, 0x2000)), nothing);
  for (const std::string& table :
       {table_of_go12(), table_of_go116(), table_of_go118(0xFFFFFFF1, 0x2000)}) {
    for (std::size_t size = 0; size + 12 < table.size(); ++size) {
      EXPECT_EQ(go_names(table.substr(0, size))[2], "-");
    }
    std::string many = table;
    many.replace(8, 8, std::string(8, '\x7f'));  // so many functions
    EXPECT_EQ(go_names(many)[0], "main.a");
  }
}

// --- Tables ------------------------------------------------------------------------------------

TEST(SymbolTable, StaysBelowItsLimits) {
  const std::string names = std::string("one\0two\0three", 13) + '\0';
  const BinaryFile file = BinaryFile::of_bytes(names);
  FileWindow window(file, 0, names.size());
  SymbolTableBuilder builder({.symbols = 2, .name_bytes = 100});
  builder.add({{.start = 0, .name = 0}, {.start = 16, .name = 4}, {.start = 32, .name = 8}},
              window);
  auto table = builder.finish();
  EXPECT_EQ(table.size(), 2U);
  EXPECT_EQ(table.dropped(), 1U);
  EXPECT_EQ(table.find(100), "two");
  SymbolTableBuilder short_names({.symbols = 20, .name_bytes = 5});
  short_names.add({{.start = 0, .name = 0}, {.start = 16, .name = 4}}, window);
  table = short_names.finish();
  EXPECT_EQ(table.dropped(), 1U);
  EXPECT_EQ(table.find(3), "one");
}

TEST(SymbolTable, CutsLongNames) {
  const std::string names = std::string(5000, 'n') + '\0';
  const BinaryFile file = BinaryFile::of_bytes(names);
  FileWindow window(file, 0, names.size());
  SymbolTableBuilder builder;
  builder.add({{.start = 0, .name = 0}}, window);
  EXPECT_EQ(builder.finish().find(0), std::string(4096, 'n'));
}

TEST(SymbolTable, PrefersTheFirstSourceAndThePublicName) {
  const std::string names = std::string("__libc_f\0f\0g@@V1\0other\0inner", 28) + '\0';
  const BinaryFile file = BinaryFile::of_bytes(names);
  FileWindow window(file, 0, names.size());
  SymbolTableBuilder builder;
  builder.add({{.start = 0, .size = 64, .name = 0},
               {.start = 0, .size = 64, .name = 9},
               {.start = 64, .size = 64, .name = 11},
               {.start = 70, .size = 4, .name = 23}},
              window);
  builder.add({{.start = 0, .name = 17}, {.start = 256, .size = 8, .name = 17}}, window);
  const auto table = builder.finish();
  EXPECT_EQ(table.find(63), "f");
  EXPECT_EQ(table.find(64), "g");
  EXPECT_EQ(table.find(70), "inner");
  EXPECT_EQ(table.find(74), "g");
  EXPECT_EQ(table.find(128), std::nullopt);
  EXPECT_EQ(table.find(256), "other");
  EXPECT_EQ(table.find(264), std::nullopt);
}

}  // namespace
}  // namespace ceems::exporter::profile
