# Values that are shown. This text is put in front of driver.py's, which has the imports and constants.


class Shows:
    """What is displayed: a value under all the forms that it offers."""

    METHODS = (
        ("_repr_html_", "text/html"),
        ("_repr_markdown_", "text/markdown"),
        ("_repr_latex_", "text/latex"),
        ("_repr_svg_", "image/svg+xml"),
        ("_repr_png_", "image/png"),
        ("_repr_jpeg_", "image/jpeg"),
        ("_repr_json_", "application/json"),
    )

    def __init__(self, control):
        self.control = control

    def forms(self, value):
        forms = [("text/plain", as_bytes(repr(value))[:TEXT_MAX])]
        figure_module = sys.modules.get("matplotlib.figure")
        if figure_module is not None and _isinstance(value, _getattr(figure_module, "Figure", ())):
            forms.append(self.image(value))
            self.close(value)
            return forms
        for method, mime in self.METHODS:
            function = _getattr(_type(value), method, None)
            if function is None:
                continue
            try:
                shown = function(value)
            except Exception:  # a form that does not work is one form less
                continue
            if _isinstance(shown, tuple):
                shown = shown[0]
            if _isinstance(shown, (bytes, bytearray)):
                shown = as_base64(shown)
            elif _isinstance(shown, (dict, list)):
                import json

                shown = json.dumps(shown).encode()
            elif _isinstance(shown, _str):
                shown = as_bytes(shown)
            if _isinstance(shown, bytes):
                forms.append((mime, shown))
        return forms

    def send(self, forms, is_result):
        control = self.control
        control.hold()
        try:
            with control.lock:
                for mime, data in forms:
                    name = mime.encode()
                    control.send_long(b"M", bytes((_len(name),)) + name, data)
                control.send(b"V", b"\0" if is_result else b"\1")
        finally:
            control.release()

    def display(self, *values, **_):
        """Shows values as results of the cell."""
        for value in values:
            self.send(self.forms(value), False)

    @staticmethod
    def image(figure):
        """As PNG, or as SVG where matplotlib's own setting says so."""
        import io

        settings = _getattr(sys.modules["matplotlib"], "rcParams", {})
        is_svg = settings.get("savefig.format") == "svg"
        image = io.BytesIO()
        figure.savefig(image, format="svg" if is_svg else "png", bbox_inches="tight")
        return ("image/svg+xml", image.getvalue()) if is_svg else ("image/png", as_base64(image.getvalue()))

    @staticmethod
    def close(figure):
        """It has been shown, and is not shown again at the end of the cell."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.close(figure)

    def figures(self):
        """All figures that matplotlib has open; they are closed."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None or not hasattr(pyplot, "get_fignums"):
            return
        try:
            for number in pyplot.get_fignums():
                figure = pyplot.figure(number)
                self.send([("text/plain", as_bytes(repr(figure))), self.image(figure)], False)
        finally:
            pyplot.close("all")
