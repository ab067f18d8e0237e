# Puts the page of `kilin lens` together and writes it as a C++ string.
#   cmake -DFOLDER=src/cli/lens_page/page -DSCRIPTS="a.js;b.js" -DOUT=page_text.cpp -P EmbedLensPage.cmake
# In page.html {{style}} is page.css, {{scripts}} are the scripts in their order, in one scope; {{data}} stays for the program.
file(READ ${FOLDER}/page.html PAGE)
file(READ ${FOLDER}/page.css STYLE)
set(CODE "")
foreach(SCRIPT ${SCRIPTS})
  file(READ ${FOLDER}/${SCRIPT} TEXT)
  string(APPEND CODE "${TEXT}")
endforeach()
string(REPLACE "{{style}}" "${STYLE}" PAGE "${PAGE}")
string(REPLACE "{{scripts}}" "${CODE}" PAGE "${PAGE}")
string(FIND "${PAGE}" ")kilin\"" END_OF_STRING)
string(FIND "${CODE}${STYLE}" "</s" END_OF_ELEMENT)
if(NOT END_OF_STRING EQUAL -1 OR NOT END_OF_ELEMENT EQUAL -1)
  message(FATAL_ERROR "${FOLDER}: a script or the style ends its element, or holds the end of the C++ string")
endif()
file(WRITE ${OUT} "#include \"cli/lens_page/page.h\"\n\nnamespace kilin::cli {\n\nconst std::string_view kLensPage = R\"kilin(${PAGE})kilin\";\n\n}  // namespace kilin::cli\n")
