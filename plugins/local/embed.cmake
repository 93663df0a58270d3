# cmake "-DINPUTS=file;file" -DOUTPUT=file.c -P embed.cmake: the bytes of files, one behind the other, as a C array. Python
# gets a file of JavaScript as a text: DRIVER_JS = r"""…""" (22 and so on are these characters).
set(hex "")
foreach(input IN LISTS INPUTS)
    file(READ ${input} part HEX)
    if(input MATCHES "\\.js$")
        set(part "4452495645525f4a53203d2072222222${part}2222220a")
    endif()
    string(APPEND hex ${part})
endforeach()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)"
       "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"box.h\"\n\nconst unsigned char driver_text[] = {\n${bytes}};\n"
     "const size_t driver_text_len = sizeof driver_text;\n")
