"""The classes of IPython.display, for images that have no IPython: values with one rich form each."""
import base64
import html
import os

core = core  # given by the driver

PUBLIC = ["DisplayObject", "TextDisplayObject", "Pretty", "HTML", "Markdown", "Math", "Latex", "SVG", "JSON",
          "GeoJSON", "Javascript", "Image", "Code", "IFrame", "YouTubeVideo", "Audio", "Video",
          "VimeoVideo", "ScribdDocument", "FileLink", "FileLinks", "DisplayHandle", "ProgressBar", "display_html",
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

    home = "core"

    def __repr__(self):
        return "<IPython.%s.display.%s object>" % (self.home, type(self).__name__)


class TextDisplayObject(DisplayObject):
    pass


class Pretty(TextDisplayObject):
    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self.data))


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
    takes_file = True

    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **ignored):
        super().__init__(data, url, filename, metadata)
        self.metadata.update(expanded=expanded, root=root)

    def reload(self):
        super().reload()
        if isinstance(self.data, str):
            import json
            self.data = json.loads(self.data)

    def _repr_json_(self):
        return self.data, self.metadata


class GeoJSON(JSON):
    def _ipython_display_(self):
        core.display({"application/geo+json": self.data, "text/plain": repr(self)}, raw=True)


class Javascript(TextDisplayObject):
    takes_address = takes_file = True

    def __init__(self, data=None, url=None, filename=None, lib=None, css=None):
        super().__init__(data, url, filename)
        self.lib = [lib] if isinstance(lib, str) else lib or []
        self.css = [css] if isinstance(css, str) else css or []

    def _repr_javascript_(self):
        styles = "".join('$("head").append($("<link/>").attr({rel: "stylesheet", type: "text/css", href: "%s"}));\n'
                         % each for each in self.css)
        return "".join(['%s$.getScript("%s", function () {\n' % (styles, each) for each in self.lib] or [styles]) \
            + self.data + "});\n" * len(self.lib)


class Code(TextDisplayObject):
    def __init__(self, data=None, language=None, **options):
        super().__init__(data, **options)
        self.language = language

    def _repr_html_(self):
        return "<pre>%s</pre>" % html.escape(self.data)

    def __repr__(self):
        return self.data


class Image(DisplayObject):
    """One that is only named by its address is not fetched: whoever looks at it does that."""

    takes_address = takes_file = is_binary = True

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None,
                 retina=False, unconfined=False, metadata=None, alt=None):
        self.format, self.width, self.height, self.alt = format, width, height, alt
        self.embed = embed
        super().__init__(data, url, filename, metadata)

    def reload(self):
        if self.embed is None:
            self.embed = self.url is None
        if self.embed or self.url is None:
            super().reload()

    def kind(self):
        if self.format:
            return self.format.lower().replace("jpg", "jpeg")
        data = self.data if isinstance(self.data, bytes) else b""
        for start, kind in ((b"\xff\xd8", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp")):
            if data.startswith(start):
                return kind
        return "png"

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.embed:
            return {"image/" + self.kind(): self.data}
        wanted = (("width", self.width), ("height", self.height), ("alt", self.alt))
        sizes = "".join(' %s="%s"' % pair for pair in wanted if pair[1])
        return {"text/html": '<img src="%s"%s/>' % (self.url, sizes)}


class IFrame:
    def __init__(self, src, width, height, extras=(), **parameters):
        from urllib.parse import urlencode
        self.src = src + ("?" + urlencode(parameters) if parameters else "")
        self.width, self.height = width, height

    def _repr_html_(self):
        return '<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen></iframe>' % (
            self.width, self.height, html.escape(self.src))


    def __repr__(self):
        return "<IPython.lib.display.%s at 0x%x>" % (type(self).__name__, id(self))


class Embedded(IFrame):
    address = ""

    def __init__(self, id, width=400, height=300, **parameters):
        super().__init__(self.address % id, width, height, **parameters)


class YouTubeVideo(Embedded):
    address = "https://www.youtube.com/embed/%s"


class VimeoVideo(Embedded):
    address = "https://player.vimeo.com/video/%s"


class ScribdDocument(Embedded):
    address = "https://www.scribd.com/embeds/%s/content"


class Media(DisplayObject):
    takes_file = is_binary = True
    tag = mime = ""

    def __init__(self, data=None, filename=None, url=None, embed=None, rate=None, autoplay=False, **options):
        self.rate, self.autoplay = rate, autoplay
        if isinstance(data, str) and data.startswith(("http://", "https://")):
            data, url = None, data
        self.address = url if not embed else None
        super().__init__(data, url if embed else None, filename, **options)

    def source(self):
        if self.address:
            return html.escape(self.address)
        data = self.data if isinstance(self.data, bytes) else bytes(self.data or b"")
        return "data:%s;base64,%s" % (self.type_of(), base64.b64encode(data).decode())

    def type_of(self):
        import mimetypes
        return self.filename and mimetypes.guess_type(self.filename)[0] or self.mime

    def _repr_html_(self):
        start = " autoplay" if self.autoplay else ""
        return '<%s controls%s src="%s"></%s>' % (self.tag, start, self.source(), self.tag)


class Audio(Media):
    tag, mime, home = "audio", "audio/wav", "lib"

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
    def __init__(self, path, url_prefix="", result_html_prefix="", result_html_suffix="<br>", **ignored):
        self.path, self.url_prefix = os.fspath(path), url_prefix
        self.before, self.after = result_html_prefix, result_html_suffix

    def _repr_html_(self):
        if not os.path.exists(self.path):
            return "Path (<tt>%s</tt>) does not exist, or not yet." % html.escape(self.path)
        return "%s<a href='%s' target='_blank'>%s</a>%s" % (
            self.before, html.escape(self.url_prefix + self.path), html.escape(self.path), self.after)

    def __repr__(self):
        return os.path.abspath(self.path)


class FileLinks(FileLink):
    def paths(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.path) for name in sorted(names)]

    def _repr_html_(self):
        return "\n".join(FileLink(path)._repr_html_() for path in self.paths())

    def __repr__(self):
        return "\n".join(self.paths())


class ProgressBar:
    def __init__(self, total):
        self.total, self._progress = total, 0
        self.html_width = "60ex"

    def __repr__(self):
        done = 60 * self._progress // self.total if self.total else 60
        return "[%s%s] %d/%d" % ("=" * done, " " * (60 - done), self._progress, self.total)

    def _repr_html_(self):
        return "<progress style='width:%s' max='%d' value='%d'></progress>" % (
            self.html_width, self.total, self._progress)

    def display(self):
        core.display(self)

    def update(self):
        pass  # a client that has been shown the bar cannot be shown it again in its place

    @property
    def progress(self):
        return self._progress

    @progress.setter
    def progress(self, value):
        self._progress = value
        self.update()

    def __iter__(self):
        self.display()
        self._progress = -1
        return self

    def __next__(self):
        self.progress += 1
        if self.progress < self.total:
            return self.progress
        raise StopIteration


DisplayHandle = core.part("display").DisplayHandle


def shows(mime):
    def show(*values, raw=False, **options):
        for value in values:
            if raw:
                core.display({mime: value}, raw=True)
            else:
                core.display(value, include=[mime])
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


def set_matplotlib_formats(*formats, **options):
    core.part("figures").set_formats(*formats)
