echo a "b c" && cat x; ls
exit 3