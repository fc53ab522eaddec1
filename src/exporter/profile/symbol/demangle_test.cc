#include "exporter/profile/symbol/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "exporter/profile/symbol/compiled_binary_test_support.h"

namespace ceems::exporter::profile {
namespace {

std::string full(std::string_view name) {
  return demangled(name, DemangleMode::kFull);
}
std::string templates(std::string_view name) {
  return demangled(name, DemangleMode::kTemplates);
}
std::string simplified(std::string_view name) {
  return demangled(name, DemangleMode::kSimplified);
}

TEST(Demangle, ModesAreThoseOfTheConfiguration) {
  EXPECT_EQ(demangle_mode(" None\t"), DemangleMode::kNone);
  EXPECT_EQ(demangle_mode("simplified"), DemangleMode::kSimplified);
  EXPECT_EQ(demangle_mode("TEMPLATES"), DemangleMode::kTemplates);
  EXPECT_EQ(demangle_mode("full"), DemangleMode::kFull);
  EXPECT_EQ(demangle_mode("all"), std::nullopt);
  EXPECT_EQ(demangle_mode(""), std::nullopt);
}

TEST(Demangle, ModesShowMoreAndMore) {
  constexpr std::string_view kName = "_ZN4work5SolveIdLi3EE4stepIiEEvRKSt6vectorIT_SaIS4_EE.cold";
  EXPECT_EQ(demangled(kName, DemangleMode::kNone), kName);
  EXPECT_EQ(simplified(kName), "work::Solve::step");
  EXPECT_EQ(templates(kName), "work::Solve<double, 3>::step<int>");
  EXPECT_EQ(
      full(kName),
      "void work::Solve<double, 3>::step<int>(std::vector<int, std::allocator<int> > const&)");
  // Parameters of the enclosing function.
  constexpr std::string_view kLambda = "_ZZN4work3runEiENKUlPKcE_clES1_";
  EXPECT_EQ(simplified(kLambda), "work::run::{lambda(char const*)#1}::operator()");
  EXPECT_EQ(full(kLambda),
            "work::run(int)::{lambda(char const*)#1}::operator()(char const*) const");
}

TEST(Demangle, LeavesOtherNamesAlone) {
  for (const std::string_view name :
       {"main", "", "_Z", "_ZN", "_Zblah", "daxpy_", "runtime.mallocgc", "_ZN4workE1",
        "_Z99999999999999999999f", "_RNvC", "_R", "_ZNE"}) {
    EXPECT_EQ(full(name), name);
  }
}

/// What the C++ runtime makes of a name. Only for names that are known to be harmless.
std::string of_the_runtime(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : "";
}

TEST(Demangle, AgreesWithTheRuntimeOnTypesAndNames) {
  for (const std::string name : {"_Z1fv",
                                 "_Z1fPFiPKcE",
                                 "_Z1fRA3_i",
                                 "_Z1fM1AFvvE",
                                 "_Z1fM1Ai",
                                 "_Z1fPA3_A4_d",
                                 "_ZN1AC1Ei",
                                 "_ZN1AD2Ev",
                                 "_ZN1AIiEC2ERKS0_",
                                 "_ZN1AcviEv",
                                 "_ZN1AcvT_IiEEv",
                                 "_ZN1AlsIcEERS_T_",
                                 "_ZN12_GLOBAL__N_11fEv",
                                 "_ZNSt6vectorIiSaIiEE9push_backEOi",
                                 "_ZNKSt3mapISsiE4findERKSs",
                                 "_Z3addIdET_S0_S0_",
                                 "_Z3sumIJidcEEvDpT_",
                                 "_Z3sumIJEEvDpT_",
                                 "_ZNSt5tupleIJidEEC2IJidELb1EEEDpOT_",
                                 "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc",
                                 "_ZTV1A",
                                 "_ZTI1A",
                                 "_ZThn8_N1A1fEv",
                                 "_ZTv0_n24_N1A1fEv",
                                 "_ZGVZ1fvE1x",
                                 "_ZZ1fvE1x_0",
                                 "_Z1fILb1ELi5ELj6ElLc65EEvv",
                                 "_ZNO1A1fEv",
                                 "_ZNKR1A1fEv",
                                 "_ZNVK1A1fEv",
                                 "_Z1fDn",
                                 "_Z1fDv4_f",
                                 "_Z1fCd",
                                 "_Z1fu9__ibm1287",
                                 "_ZplRK1AS1_",
                                 "_ZN1AixEi",
                                 "_ZN1AclEv",
                                 "_Znwm",
                                 "_ZdlPv",
                                 "_Zli2_xy",

                                 "_Z1fIXadL_Z1gvEEEvv",
                                 "_Z1fIbEvPNSt9enable_ifIXsr3std7is_sameIT_iEE5valueEvE4typeE",
                                 "_Z1fPVKc",
                                 "_Z1fPrc",
                                 "_Z4bindIRFviEJiEEvOT_DpOT0_"}) {
    const std::string expected = of_the_runtime(name);
    if (!expected.empty()) {
      EXPECT_EQ(full(name), expected) << name;
    }
  }
}

TEST(Demangle, AgreesWithTheRuntimeOnLibraries) {
  const auto nm = program("nm");
  if (!nm) {
    GTEST_SKIP() << "requires nm (binutils)";
  }
  std::size_t compared = 0;
  std::size_t same = 0;
  std::size_t failed = 0;
  std::string examples;
  for (const std::string& path : {std::string("/usr/lib/x86_64-linux-gnu/libstdc++.so.6"),
                                  std::string(std::filesystem::read_symlink("/proc/self/exe"))}) {
    const auto done = os::real_runner().run(
        {.path = *nm,
         .arguments = {"--defined-only", "-P", path.ends_with(".6") ? "--dynamic" : "--no-demangle",
                       path},
         .environment = {}});
    ASSERT_TRUE(done) << done.error().message;
    std::set<std::string, std::less<>> names;
    for (std::string_view line : split(done->output, '\n')) {
      const std::string_view name = take_word(line);
      const std::string_view type = take_word(line);
      if (name.starts_with("_Z") && name.size() < 400 &&
          (type == "T" || type == "W" || type == "t")) {
        names.emplace(name.substr(0, name.find('@')));
      }
    }
    for (const std::string& name : names) {
      const std::string expected = of_the_runtime(name.substr(0, name.find('.')));
      if (expected.empty()) {
        continue;
      }
      const std::string found = full(name);
      ++compared;
      same += found == expected ? 1 : 0;
      failed += found == name ? 1 : 0;
      if (found != expected && examples.size() < 1000) {
        examples += fmt::format("{}\n  ours    {}\n  runtime {}\n", name, found, expected);
      }
    }
  }
  EXPECT_GT(compared, 5000U);
  // The runtime differs in blanks, in expressions, and where a substitution has a
  // parameter of another function.
  EXPECT_GE(same * 100, compared * 95);
  EXPECT_LE(failed * 200, compared);
}

TEST(Demangle, RefusesNamesThatExplode) {
  // Each component has the one before twice: 2^40 bytes.
  const auto sequence = [](unsigned i) {  // in base 36
    constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return i < 36 ? std::string(1, kDigits[i]) : std::string("1") + kDigits[i - 36];
  };
  const auto exploding = [&](std::string name, unsigned generations) {
    for (unsigned i = 0; i < generations; ++i) {
      name += fmt::format("S0_IS{0}_S{0}_E", sequence(i + 1));
    }
    return name + "Evv";
  };
  EXPECT_EQ(full(exploding("_Z1fI1AIiiE", 1)),
            "void f<A<int, int>, A<A<int, int>, A<int, int> > >()");
  const std::string name = exploding("_Z1fI1AIiiE", 40);
  EXPECT_EQ(full(name), name);
  // Nesting.
  for (const std::string piece : {"P", "N", "I", "Z", "FP", "1AI", "XplLi", "Dp", "K", "M"}) {
    std::string nested = "_Z1f";
    while (nested.size() < 4000) {
      nested += piece;
    }
    EXPECT_EQ(full(nested), nested);
  }
  const std::string too_long = "_Z1f" + std::string(4096, 'i');
  EXPECT_EQ(full(too_long), too_long);
}

TEST(Demangle, ReadsRust) {
  EXPECT_EQ(full("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
  EXPECT_EQ(full("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
                 "17h930b740aa94f1d3aE"),
            "<Test + 'static as foo::Bar<Test>>::bar");
  // Examples of RFC 2603 and of rustc.
  EXPECT_EQ(full("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
  EXPECT_EQ(full("_RNvMNtCs1234_7mycrate3fooNtB2_3FooNtB5_3bar"),
            "_RNvMNtCs1234_7mycrate3fooNtB2_3FooNtB5_3bar");
  EXPECT_EQ(full("_RNvC6_123foo3bar"), "123foo::bar");
  EXPECT_EQ(full("_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_"), "cc::spawn::{closure#0}::{closure#0}");
  EXPECT_EQ(full("_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_"
                 "ECs1iopQbuBiw2_3std"),
            "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>");
  EXPECT_EQ(simplified("_RINvCs1_1a3fooNtB2_1TE"), "a::foo");
  EXPECT_EQ(templates("_RINvCs1_1a3fooNtB2_1TAhj10_RSmTlbEFcEuE"),
            "a::foo::<a::T, [u8; 16], &[u32], (i32, bool), fn(char)>");
  EXPECT_EQ(full("_RNvYNtCs1_1a1SNtB4_5Trait3run"), "<a::S as a::Trait>::run");
}

}  // namespace
}  // namespace ceems::exporter::profile
