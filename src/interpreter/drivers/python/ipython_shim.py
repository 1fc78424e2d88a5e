"""The classes of IPython.display, for images that have no IPython: values with one rich form each."""
import base64
import html
import os

core = core  # given by the driver

PUBLIC = ["DisplayObject", "TextDisplayObject", "Pretty", "HTML", "Markdown", "Math", "Latex", "SVG", "JSON",
          "GeoJSON", "Javascript", "Image", "Code", "IFrame", "YouTubeVideo", "Audio", "Video",
          "FileLink", "FileLinks", "DisplayHandle", "ProgressBar", "display_html",
          "display_markdown", "display_svg", "display_png", "display_jpeg", "display_latex",
          "display_json", "display_javascript", "display_pdf", "display_pretty", "update_display",
          "publish_display_data", "set_matplotlib_formats"]


def fetch(url):
    from urllib.request import urlopen
    with urlopen(url) as answer:
        return answer.read()


class DisplayObject:
    def __init__(self, data=None, url=None, filename=None, metadata=None, **ignored):
        if isinstance(data, os.PathLike):
            filename, data = os.fspath(data), None
        elif isinstance(data, str) and url is None and filename is None:
            if data.startswith(("http://", "https://")) and self.takes_address:
                url, data = data, None
            elif self.takes_file and len(data) < 4096 and os.path.isfile(data):
                filename, data = data, None
        self.data, self.url, self.filename, self.metadata = data, url, filename, metadata or {}
        self.reload()

    takes_address = False
    takes_file = False

    def reload(self):
        if self.filename is not None:
            with open(self.filename, "rb") as file:
                self.data = file.read()
        elif self.url is not None and self.data is None:
            self.data = fetch(self.url)
        if isinstance(self.data, bytes) and not self.is_binary:
            self.data = self.data.decode("utf-8", "replace")

    is_binary = False

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__


class TextDisplayObject(DisplayObject):
    pass


class Pretty(TextDisplayObject):
    def __repr__(self):
        return str(self.data)


class HTML(TextDisplayObject):
    def _repr_html_(self):
        return self.data


class Markdown(TextDisplayObject):
    def _repr_markdown_(self):
        return self.data


class Latex(TextDisplayObject):
    def _repr_latex_(self):
        return self.data


class Math(TextDisplayObject):
    def _repr_latex_(self):
        return "$\\displaystyle %s$" % self.data.strip("$")


class SVG(DisplayObject):
    takes_address = takes_file = True

    def _repr_svg_(self):
        return self.data


class JSON(DisplayObject):
    def _repr_json_(self):
        return self.data


class GeoJSON(JSON):
    pass


class Javascript(TextDisplayObject):
    def _repr_javascript_(self):
        return self.data


class Code(TextDisplayObject):
    def __init__(self, data=None, language=None, **options):
        super().__init__(data, **options)
        self.language = language

    def _repr_html_(self):
        return "<pre>%s</pre>" % html.escape(self.data)

    def __repr__(self):
        return self.data


class Image(DisplayObject):
    takes_address = takes_file = is_binary = True

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None,
                 height=None, **options):
        self.format, self.width, self.height = format, width, height
        super().__init__(data, url, filename, **options)

    def kind(self):
        if self.format:
            return self.format.lower().replace("jpg", "jpeg")
        data = self.data if isinstance(self.data, bytes) else b""
        return "jpeg" if data.startswith(b"\xff\xd8") else "gif" if data.startswith(b"GIF8") else "png"

    def _repr_png_(self):
        return self.data if self.kind() == "png" else None

    def _repr_jpeg_(self):
        return self.data if self.kind() == "jpeg" else None

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/gif": self.data} if self.kind() == "gif" else {}


class IFrame:
    def __init__(self, src, width, height, extras=(), **parameters):
        from urllib.parse import urlencode
        self.src = src + ("?" + urlencode(parameters) if parameters else "")
        self.width, self.height = width, height

    def _repr_html_(self):
        return '<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen></iframe>' % (
            self.width, self.height, html.escape(self.src))


class YouTubeVideo(IFrame):
    def __init__(self, id, width=400, height=300, **parameters):
        super().__init__("https://www.youtube.com/embed/" + id, width, height, **parameters)


class Media(DisplayObject):
    takes_file = is_binary = True
    tag, mime = "", ""

    def __init__(self, data=None, filename=None, url=None, embed=True, rate=None, autoplay=False, **options):
        self.rate = rate
        self.address = url or (data if isinstance(data, str) and data.startswith("http") else None)
        super().__init__(None if self.address else data, None, filename, **options)

    def source(self):
        if self.address:
            return html.escape(self.address)
        data = self.data if isinstance(self.data, bytes) else bytes(self.data or b"")
        return "data:%s;base64,%s" % (self.mime, base64.b64encode(data).decode())

    def _repr_html_(self):
        return '<%s controls src="%s"></%s>' % (self.tag, self.source(), self.tag)


class Audio(Media):
    tag, mime = "audio", "audio/wav"

    def __init__(self, data=None, **options):
        if self.is_samples(data):
            data = self.as_wave(data, options.get("rate"))
        super().__init__(data, **options)

    @staticmethod
    def is_samples(data):
        return data is not None and not isinstance(data, (str, bytes, os.PathLike))

    @staticmethod
    def as_wave(samples, rate):
        import array
        import io
        import wave
        values = [float(value) for value in samples]
        most = max([abs(value) for value in values] or [1]) or 1
        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(int(rate))
            file.writeframes(array.array("h", [int(value / most * 32767) for value in values]).tobytes())
        return out.getvalue()


class Video(Media):
    tag, mime = "video", "video/mp4"


class FileLink:
    def __init__(self, path, **options):
        self.path = os.fspath(path)

    def _repr_html_(self):
        return '<a href="%s">%s</a>' % (html.escape(self.path), html.escape(self.path))

    def __repr__(self):
        return os.path.abspath(self.path)


FileLinks = FileLink


class ProgressBar:
    def __init__(self, total):
        self.total, self.progress = total, 0

    def __repr__(self):
        return "%d/%d" % (self.progress, self.total)

    def display(self):
        core.display(self)

    update = display


DisplayHandle = core.part("display").Handle


def shows(mime):
    def show(*values, raw=False, **options):
        for value in values:
            core.display({mime: value} if raw else value, raw=raw)
    return show


display_html = shows("text/html")
display_markdown = shows("text/markdown")
display_svg = shows("image/svg+xml")
display_png = shows("image/png")
display_jpeg = shows("image/jpeg")
display_latex = shows("text/latex")
display_json = shows("application/json")
display_javascript = shows("application/javascript")
display_pdf = shows("application/pdf")
display_pretty = shows("text/plain")


def update_display(value, *, display_id=None, **options):
    core.display(value, **options)


def publish_display_data(data, metadata=None, **options):
    core.display(data, raw=True)


def set_matplotlib_formats(*ignored, **options):
    pass
