from django.urls import path

from tests.benchmarks.baseline.views import SerializerView, insert

urlpatterns = [path("serializer", SerializerView.as_view()), path("insert", insert)]
