/* A file that was built before, within the program: its bytes as `name`, up to `name_end`. */
#ifndef LOCAL_INCLUDE_FILE_H
#define LOCAL_INCLUDE_FILE_H

#define INCLUDE_FILE(name, path)                                    \
    __asm__(".pushsection .rodata\n"                                \
            ".global " #name "\n" #name ":\n.incbin \"" path "\"\n" \
            ".global " #name "_end\n" #name "_end:\n.byte 0\n"      \
            ".popsection\n");                                       \
    extern const unsigned char name[], name##_end[]

#endif
