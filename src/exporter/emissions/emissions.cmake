# Sources and tests of the emission factors of lib_exporter; included by src/exporter/CMakeLists.txt, which
# adds EXPORTER_EMISSIONS_SRCS and EXPORTER_EMISSIONS_TESTS to its lists.

# The factors of countries are compiled in, so that the one binary is all a node needs.
set(emission_factors ${CMAKE_SOURCE_DIR}/data/emission-factors.csv)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${emission_factors})
file(READ ${emission_factors} CEEMS_EMISSION_FACTORS)
configure_file(${CMAKE_CURRENT_LIST_DIR}/country_table.cc.in
               ${CMAKE_CURRENT_BINARY_DIR}/emissions_country_table.cc @ONLY)

set(EXPORTER_EMISSIONS_SRCS
    ${CMAKE_CURRENT_BINARY_DIR}/emissions_country_table.cc
    collectors/emissions.cc
    emissions/all.cc
    emissions/answers.cc
    emissions/emaps.cc
    emissions/owid.cc
    emissions/provider.cc
    emissions/rte.cc
    emissions/service.cc
    emissions/watttime.cc)

set(EXPORTER_EMISSIONS_TESTS
    collectors/emissions_test.cc
    emissions/answers_test.cc
    emissions/country_table_test.cc
    emissions/provider_test.cc)
