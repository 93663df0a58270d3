echo a &&

; | ls